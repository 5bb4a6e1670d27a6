#include "text/rust_call.h"

#include <string>

namespace lockstep {

Status StatusFromRust(std::string_view wire) {
  const size_t separator = wire.find('\x1f');
  if (wire.empty() || separator == std::string_view::npos) return Internal(std::string(wire));
  std::string param(wire.substr(1, separator - 1));
  std::string message(wire.substr(separator + 1));
  switch (wire.front()) {
    case 'A':
      return InvalidArgument(std::move(message), std::move(param));
    case 'D':
      return DataLoss(std::move(message), std::move(param));
    case 'U':
      return Unimplemented(std::move(message), std::move(param));
    case 'R':
      return ResourceExhausted(std::move(message), std::move(param));
    default:
      return Internal(std::move(message));
  }
}

}  // namespace lockstep
