// MLX's affine formats (mlx.core.quantize, mode "affine"): a matrix [n, k] is three tensors, the
// planes of a row in this order:
//
//   weight  U32 [n, k * bits / 32]: the codes of a row as one stream of bits, little endian, code i
//           in bits [i * bits, (i + 1) * bits)
//   scales  BF16, F16 or F32 [n, k / group]
//   biases  as the scales
//       scale * code + bias, each rounded to f32
//
// bits is 2, 3, 4, 5, 6 or 8; group is 32, 64 or 128. A name says all three: "MLX_4_G64_BF16".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::quant {

// The name that FindFormat knows the format by; `constants` is the type of scales and biases. Any
// numbers may be asked for: what does not exist is not found.
std::string MlxAffineName(uint32_t bits, uint32_t group, std::string_view constants);

}  // namespace lockstep::quant
