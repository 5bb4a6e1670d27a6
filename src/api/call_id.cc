#include "api/call_id.h"

#include <fmt/format.h>

namespace lockstep {

std::string CallId(ToolFormat format, std::string_view unique, size_t number) {
  // Mistral's templates take nine letters and digits and nothing else.
  if (format == ToolFormat::kMistral) return fmt::format("{:.4}{:05}", unique, number % 100000);
  return fmt::format("call_{}{:06}", unique, number);
}

}  // namespace lockstep
