// A check of a command-line number. Where CLI::Range compares, and so lets NaN through, this asks
// for a number within the bounds. Stateless.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace lockstep {

// The bounds are inclusive.
inline CLI::Validator NumberBetween(double low, double high) {
  const auto check = [low, high](std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) {
      return std::string();
    }
    return fmt::format("{} is not a number between {} and {}", text, low, high);
  };
  return CLI::Validator(check, fmt::format("NUMBER in [{} - {}]", low, high));
}

}  // namespace lockstep
