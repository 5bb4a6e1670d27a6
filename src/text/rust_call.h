// The seam to the Rust text library: turns its errors into Status. For this folder and grammar/.
#pragma once

#include <exception>
#include <span>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "rust/cxx.h"

namespace lockstep {

// `wire` is an error as the library writes it: a letter for the code, the key at fault, a unit
// separator, the message.
Status StatusFromRust(std::string_view wire);

inline rust::Slice<const uint8_t> RustBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

template <typename T>
rust::Slice<const T> RustSlice(std::span<const T> values) {
  return {values.data(), values.size()};
}

// Calls into the library; its exceptions end here.
template <typename F>
auto CallRust(F&& function) -> Result<decltype(function())> {
  try {
    return std::forward<F>(function)();
  } catch (const rust::Error& error) {
    return StatusFromRust(error.what());
  } catch (const std::exception& error) {
    return Internal(error.what());
  }
}

}  // namespace lockstep
