#include "api/error_map.h"

#include <array>

#include "api/excerpt.h"

namespace lockstep {
namespace {

struct Row {
  StatusCode code;
  int http;
  const char* type;
  const char* api_code;  // null: JSON null
  int retry_after_seconds;
};

constexpr const char* kInvalid = "invalid_request_error";
constexpr const char* kServer = "server_error";

// A template's own message may hold a whole conversation, a key be as long as a body.
constexpr size_t kMaxMessageBytes = 2000;
constexpr size_t kMaxParamBytes = 200;

constexpr std::array kRows = {
    Row{StatusCode::kInvalidArgument, 400, kInvalid, nullptr, 0},
    Row{StatusCode::kNotFound, 404, kInvalid, "not_found", 0},
    Row{StatusCode::kFailedPrecondition, 400, kInvalid, nullptr, 0},
    Row{StatusCode::kContextLength, 400, kInvalid, "context_length_exceeded", 0},
    Row{StatusCode::kResourceExhausted, 400, kInvalid, "insufficient_memory", 0},
    Row{StatusCode::kQueueFull, 429, "rate_limit_error", "queue_full", 1},
    Row{StatusCode::kUnavailable, 503, "service_unavailable_error", "unavailable", 1},
    Row{StatusCode::kUnauthenticated, 401, kInvalid, "invalid_api_key", 0},
    Row{StatusCode::kDataLoss, 500, kServer, nullptr, 0},
    Row{StatusCode::kUnimplemented, 400, kInvalid, "unsupported", 0},
    Row{StatusCode::kCancelled, 503, "service_unavailable_error", "cancelled", 0},
    Row{StatusCode::kDeadlineExceeded, 504, kServer, "deadline_exceeded", 0},
    Row{StatusCode::kIoError, 500, kServer, nullptr, 0},
    Row{StatusCode::kInternal, 500, kServer, nullptr, 0},
};

const Row& Find(StatusCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  return kRows.back();
}

}  // namespace

HttpError ToHttpError(const Status& status) {
  const Row& row = Find(status.code());
  HttpError error;
  error.status = row.http;
  error.retry_after_seconds = row.retry_after_seconds;
  Json inner;
  inner["message"] = Excerpt(status.message(), kMaxMessageBytes);
  inner["type"] = row.type;
  inner["param"] = status.param().empty() ? Json() : Json(Excerpt(status.param(), kMaxParamBytes));
  inner["code"] = row.api_code == nullptr ? Json() : Json(row.api_code);
  if (status.code() == StatusCode::kNotFound && status.param() == "model") {
    inner["code"] = "model_not_found";
  }
  error.body["error"] = std::move(inner);
  return error;
}

Json ErrorBody(std::string_view message, std::string_view type, std::string_view code) {
  Json inner;
  inner["message"] = message;
  inner["type"] = type;
  inner["param"] = nullptr;
  inner["code"] = code.empty() ? Json() : Json(code);
  Json body;
  body["error"] = std::move(inner);
  return body;
}

}  // namespace lockstep
