#include "base/real_math.h"

#include <cmath>

namespace lockstep {
namespace {

// ln 2 in two parts; the high one has 32 trailing zero bits, so that its product with an exponent
// is exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// pi / 2 in three parts; the first two have 33 and 33 significant bits, so that their products with
// a quadrant number below 2^20 are exact.
constexpr double kHalfPi1 = 0x1.921fb54400000p+0;
constexpr double kHalfPi2 = 0x1.0b4611a600000p-34;
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

}  // namespace

double RealExp(double x) {
  const double n = std::nearbyint(x * 0x1.71547652b82fep+0);
  const double r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= ln(2) / 2
  double sum = 1.0;
  for (int i = 14; i >= 1; --i) sum = 1.0 + sum * (r / i);
  return std::ldexp(sum, static_cast<int>(n));
}

double RealLog(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {       // sqrt(1/2)
    m *= 2;
    --exponent;
  }
  // log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.172.
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double sum = 0.0;
  for (int i = 23; i >= 3; i -= 2) sum = s2 * (1.0 / i + sum);
  const double log_m = 2.0 * s + 2.0 * s * sum;
  return exponent * kLn2High + (log_m + exponent * kLn2Low);
}

double RealPow(double x, double y) { return RealExp(y * RealLog(x)); }

SineCosine RealSinCos(double x) {
  const double n = std::nearbyint(x * kTwoOverPi);
  const double r = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;  // |r| <= pi / 4
  const double r2 = r * r;
  double sine = 1.0;
  for (int i = 18; i >= 2; i -= 2) sine = 1.0 - sine * (r2 / (i * (i + 1)));
  sine *= r;
  double cosine = 1.0;
  for (int i = 18; i >= 2; i -= 2) cosine = 1.0 - cosine * (r2 / ((i - 1) * i));
  switch (static_cast<long long>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace lockstep
