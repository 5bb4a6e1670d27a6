#include "base/real_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TEST(RealMath, AgreesWithTheCLibrary) {
  for (double x = -60.0; x <= 60.0; x += 0.0373) {
    EXPECT_NEAR(RealExp(x) / std::exp(x), 1.0, 2e-15) << x;
  }
  for (double x = 1e-6; x < 1e7; x *= 1.0173) {
    EXPECT_NEAR(RealLog(x), std::log(x), 2e-15 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  for (double base : {1e4, 1e5, 5e5, 1e6, 1e7}) {
    for (int i = 0; i < 64; ++i) {
      const double exact = std::pow(base, -i / 64.0);
      EXPECT_NEAR(RealPow(base, -i / 64.0) / exact, 1.0, 1e-14) << base << " " << i;
    }
  }
  for (double x = -3.0; x <= 3e5; x = x * 1.0007 + 0.00917) {
    const SineCosine value = RealSinCos(x);
    EXPECT_NEAR(value.sine, std::sin(x), 1e-15) << x;
    EXPECT_NEAR(value.cosine, std::cos(x), 1e-15) << x;
  }
}

}  // namespace
}  // namespace lockstep
