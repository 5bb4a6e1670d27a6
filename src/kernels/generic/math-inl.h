// Exponentials over the vocabulary (generic/vocabulary.md). A fragment: included after an
// isa/*/vec-inl.h, inside its namespace.
//
// Both reduce to 2^n times a polynomial of degree 6 on half a unit around zero; the coefficients
// are twice those that tools/fit_polynomials.py computes, since the scale is 2^(n - 1): so that n =
// 128 needs no second multiplication and n = -126 scales by +0. Errors: docs/numerics.md.

// 1.5 * 2^23: adding it rounds to an integer, half to even, and leaves that in the low bits.
constexpr float kRoundToInteger = 12582912.0f;

// 2^x. +0 from -125.5 down, infinity from 128 on, NaN for NaN.
LOCKSTEP_VEC V Exp2(V x) {
  // Max and Min give their second argument for a NaN.
  const V clamped = Min(Set1(128.0f), Max(Set1(-126.0f), x));
  const V shifted = Add(clamped, Set1(kRoundToInteger));
  const V f = Sub(clamped, Sub(shifted, Set1(kRoundToInteger)));
  V p = Set1(0x1.3f906cp-12f);
  p = Fma(p, f, Set1(0x1.5f0a66p-9f));
  p = Fma(p, f, Set1(0x1.3b30b0p-6f));
  p = Fma(p, f, Set1(0x1.c6af78p-4f));
  p = Fma(p, f, Set1(0x1.ebfbd8p-2f));
  p = Fma(p, f, Set1(0x1.62e430p+0f));
  p = Fma(p, f, Set1(2.0f));
  return Mul(p, ExponentFromLowBits(shifted));
}

// e^x. +0 below about -86.99, infinity from about 88.73 on, NaN for NaN.
LOCKSTEP_VEC V Exp(V x) {
  // Bounds that keep n within [-126, 128], and 0 and infinity beyond them.
  const V clamped = Min(Set1(89.0f), Max(Set1(-87.5f), x));
  const V shifted = Add(Mul(clamped, Set1(0x1.715476p+0f)), Set1(kRoundToInteger));
  const V n = Sub(shifted, Set1(kRoundToInteger));
  // ln 2 in two parts, the first so short that its product with n is exact.
  const V f = NegFma(n, Set1(0x1.7f7d1cp-20f), NegFma(n, Set1(0x1.62e4p-1f), clamped));
  V p = Set1(0x1.68532cp-9f);
  p = Fma(p, f, Set1(0x1.123bccp-6f));
  p = Fma(p, f, Set1(0x1.555b96p-4f));
  p = Fma(p, f, Set1(0x1.55548ep-2f));
  p = Fma(p, f, Set1(0x1.fffff8p-1f));
  p = Fma(p, f, Set1(2.0f));
  p = Fma(p, f, Set1(2.0f));
  return Mul(p, ExponentFromLowBits(shifted));
}
