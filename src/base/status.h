// Status and Result<T>: how every function of lockstep reports what input or environment can cause.
// Plain values, no exceptions; copying an OK status is free of allocation. Thread-compatible.
//
// A status carries a code, a message for a person, and optionally `param`: the name of the request
// field, metadata key or flag at fault, which the APIs hand out in their error bodies.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace lockstep {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument,     // the caller's input is wrong, whatever the state
  kNotFound,            // the named thing does not exist
  kFailedPrecondition,  // right input, wrong state or unsupported combination
  kContextLength,       // more tokens than the model's context holds
  kResourceExhausted,   // can never fit, or memory could not be had
  kQueueFull,           // would fit later; retry
  kUnavailable,         // shutting down or not yet loaded
  kUnauthenticated,     // no key, or a wrong one
  kDataLoss,            // a file is truncated or corrupt
  kUnimplemented,       // well-formed, but not supported here
  kCancelled,
  kDeadlineExceeded,
  kIoError,
  kInternal,
};

std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message, std::string param = {});

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  const std::string& message() const;
  const std::string& param() const;

  // "invalid argument: temperature must be at least 0 (temperature)"
  std::string ToString() const;

  // The same status with `prefix` and ": " before the message; OK stays OK.
  Status WithContext(std::string_view prefix) const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
    std::string param;
  };
  std::shared_ptr<const Rep> rep_;
};

inline Status OkStatus() { return Status(); }
Status InvalidArgument(std::string message, std::string param = {});
Status NotFound(std::string message, std::string param = {});
Status FailedPrecondition(std::string message, std::string param = {});
Status ResourceExhausted(std::string message, std::string param = {});
Status Unavailable(std::string message);
Status Unauthenticated(std::string message);
Status DataLoss(std::string message, std::string param = {});
Status Unimplemented(std::string message, std::string param = {});
Status Cancelled(std::string message);
Status IoError(std::string message);
Status Internal(std::string message);

// A value or the status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : rep_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Status status) : rep_(std::in_place_index<1>, std::move(status)) {  // NOLINT
    LOCKSTEP_CHECK(!std::get<1>(rep_).ok());
  }

  bool ok() const { return rep_.index() == 0; }
  Status status() const { return ok() ? OkStatus() : std::get<1>(rep_); }

  // REQUIRES: ok().
  T& value() & {
    LOCKSTEP_CHECK(ok());
    return std::get<0>(rep_);
  }
  const T& value() const& {
    LOCKSTEP_CHECK(ok());
    return std::get<0>(rep_);
  }
  T&& value() && {
    LOCKSTEP_CHECK(ok());
    return std::get<0>(std::move(rep_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> rep_;
};

#define LOCKSTEP_CONCAT_INNER(a, b) a##b
#define LOCKSTEP_CONCAT(a, b) LOCKSTEP_CONCAT_INNER(a, b)

// Returns the status of `expr` from the enclosing function unless it is OK.
#define LOCKSTEP_RETURN_IF_ERROR(expr)                   \
  do {                                                   \
    ::lockstep::Status lockstep_status_ = (expr);        \
    if (!lockstep_status_.ok()) return lockstep_status_; \
  } while (false)

// LOCKSTEP_ASSIGN_OR_RETURN(auto x, F()): declares or sets x, or returns F()'s status.
#define LOCKSTEP_ASSIGN_OR_RETURN(lhs, expr) \
  LOCKSTEP_ASSIGN_OR_RETURN_INNER(LOCKSTEP_CONCAT(lockstep_result_, __LINE__), lhs, expr)
#define LOCKSTEP_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                    \
  if (!tmp.ok()) return tmp.status();                   \
  lhs = std::move(tmp).value()

}  // namespace lockstep
