#include "base/status.h"

namespace lockstep {
namespace {

const std::string& EmptyString() {
  static const std::string* empty = new std::string();
  return *empty;
}

}  // namespace

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kFailedPrecondition:
      return "failed precondition";
    case StatusCode::kContextLength:
      return "context length exceeded";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kQueueFull:
      return "queue full";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kUnauthenticated:
      return "unauthenticated";
    case StatusCode::kDataLoss:
      return "corrupt data";
    case StatusCode::kUnimplemented:
      return "not supported";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kDeadlineExceeded:
      return "deadline exceeded";
    case StatusCode::kIoError:
      return "i/o error";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message, std::string param) {
  LOCKSTEP_CHECK(code != StatusCode::kOk);
  rep_ = std::make_shared<const Rep>(Rep{code, std::move(message), std::move(param)});
}

const std::string& Status::message() const { return rep_ ? rep_->message : EmptyString(); }
const std::string& Status::param() const { return rep_ ? rep_->param : EmptyString(); }

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string text(StatusCodeName(code()));
  text += ": ";
  text += message();
  if (!param().empty()) text += " (" + param() + ")";
  return text;
}

Status Status::WithContext(std::string_view prefix) const {
  if (ok()) return *this;
  return Status(code(), std::string(prefix) + ": " + message(), param());
}

Status InvalidArgument(std::string message, std::string param) {
  return Status(StatusCode::kInvalidArgument, std::move(message), std::move(param));
}
Status NotFound(std::string message, std::string param) {
  return Status(StatusCode::kNotFound, std::move(message), std::move(param));
}
Status FailedPrecondition(std::string message, std::string param) {
  return Status(StatusCode::kFailedPrecondition, std::move(message), std::move(param));
}
Status ResourceExhausted(std::string message, std::string param) {
  return Status(StatusCode::kResourceExhausted, std::move(message), std::move(param));
}
Status Unavailable(std::string message) {
  return Status(StatusCode::kUnavailable, std::move(message));
}
Status Unauthenticated(std::string message) {
  return Status(StatusCode::kUnauthenticated, std::move(message));
}
Status DataLoss(std::string message, std::string param) {
  return Status(StatusCode::kDataLoss, std::move(message), std::move(param));
}
Status Unimplemented(std::string message, std::string param) {
  return Status(StatusCode::kUnimplemented, std::move(message), std::move(param));
}
Status Cancelled(std::string message) { return Status(StatusCode::kCancelled, std::move(message)); }
Status IoError(std::string message) { return Status(StatusCode::kIoError, std::move(message)); }
Status Internal(std::string message) { return Status(StatusCode::kInternal, std::move(message)); }

}  // namespace lockstep
