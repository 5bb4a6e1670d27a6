#include <bit>
#include <cstdint>
#include <initializer_list>

#include "kernels/elementwise.h"

namespace lockstep::kernels {

// In double and with sums and products alone, which are the same everywhere: log x = e * ln 2 +
// 2 * atanh(s) for x = m * 2^e with m in [sqrt(1/2), sqrt(2)) and s = (m - 1) / (m + 1). The series
// of atanh up to s^15 leaves less than 2^-45.
float Log(float x) {
  const uint64_t bits = std::bit_cast<uint64_t>(static_cast<double>(x));
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
  constexpr double kSqrt2 = 1.4142135623730951;
  constexpr double kLn2 = 0.6931471805599453;
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & kMantissa) | (uint64_t{1023} << 52));
  if (m >= kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double series = 1.0 / 15;
  for (const double c : {1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0}) {
    series = series * z + c;
  }
  return static_cast<float>(static_cast<double>(exponent) * kLn2 + 2.0 * s * series);
}

}  // namespace lockstep::kernels
