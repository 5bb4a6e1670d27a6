// What must hold for the tensors of any file that a reader accepts.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weights/tensor.h"

namespace lockstep::fuzz {

// Ends the process unless every tensor has a unique name, exactly the bytes of its shape and type,
// inside `file`, apart from every other. Reads each first and last byte.
void CheckTensors(const std::vector<TensorView>& tensors, std::span<const std::byte> file);

}  // namespace lockstep::fuzz
