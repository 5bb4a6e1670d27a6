// Activations to int8.
//
// Of a group's 16 values: a = the largest magnitude; scale = a / 127; code = nearest even integer
// to x * (127 / a), all in f32. A group with a < 2^-119 counts as zeros (scale 0): 127 / a would
// leave the range of f32. A group with an infinity or NaN has scale NaN and codes 0, so that every
// output of the row is NaN and is noticed.
//
// A fragment: included inside a target region and the namespace of the instruction set.

void Quantize(const float* x, int64_t x_stride, int32_t row_begin, int32_t row_end,
              QuantizedRows out) {
  constexpr float kSmallest = 0x1p-119f;
  constexpr uint32_t kInfinity = 0x7f800000u;
  const int32_t groups = out.k / kActGroup;
  for (int32_t row = row_begin; row < row_end; ++row) {
    for (int32_t g = 0; g < groups; ++g) {
      const float* from = x + row * x_stride + g * kActGroup;
      int8_t* codes = out.codes + int64_t{row} * out.k + g * kActGroup;
      int32_t& sum = out.sums[int64_t{row} * groups + g];
      float& scale = out.scales[int64_t{row} * groups + g];
      // Magnitudes compare as integers, with NaN above infinity.
      const uint32_t bits = LargestMagnitude(from);
      const float largest = std::bit_cast<float>(bits);
      if (bits >= kInfinity || largest < kSmallest) {
        scale = bits >= kInfinity ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
        std::memset(codes, 0, kActGroup);
        sum = 0;
        continue;
      }
      scale = largest / 127.0f;
      sum = Encode(from, 127.0f / largest, codes);
    }
  }
}
