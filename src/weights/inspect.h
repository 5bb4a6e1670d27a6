// What `lockstep inspect` prints: a checkpoint's format, metadata, tensors and totals, read without
// loading a weight. Pure functions of an opened checkpoint; thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "weights/checkpoint.h"

namespace lockstep {

struct InspectOptions {
  size_t max_array = 8;     // elements of an array shown before "..."
  size_t max_string = 120;  // bytes of a string shown before "..."
  bool list_tensors = true;
};

// For a person: lines ending in '\n', valid UTF-8, control characters escaped.
std::string InspectText(const Checkpoint& checkpoint, const InspectOptions& options = {});
// For a program: one JSON object {path, kind, files, metadata, tensors, totals, ...} and a '\n'.
// Arrays and strings are shortened to an object {"count" or "bytes", "first"}; bytes that are not
// UTF-8 become U+FFFD.
std::string InspectJson(const Checkpoint& checkpoint, const InspectOptions& options = {});

}  // namespace lockstep
