// From scores to weights, and from the results of splits to that of all. A fragment: included after
// math-inl.h and attention_words-inl.h, inside the namespace of an instruction set. Coefficients:
// tools/fit_polynomials.py; errors: docs/numerics.md.

LOCKSTEP_VEC int32_t Smaller(int32_t a, int32_t b) { return a < b ? a : b; }
LOCKSTEP_VEC int32_t Greater(int32_t a, int32_t b) { return a > b ? a : b; }

constexpr float kLog2E = 0x1.715476p+0f;

// Even powers of x up to this; beyond it a quotient of exponentials is as good.
constexpr float kTanhPolynomial = 0.625f;

LOCKSTEP_VEC V Tanh(V x) {
  const V z = Mul(x, x);
  V p = Set1(-0x1.7567ecp-8f);
  p = Fma(p, z, Set1(0x1.52095ep-6f));
  p = Fma(p, z, Set1(-0x1.b83780p-5f));
  p = Fma(p, z, Set1(0x1.1106fep-3f));
  p = Fma(p, z, Set1(-0x1.555532p-2f));
  const V near = Fma(Mul(x, z), p, x);
  const V size = Max(x, Sub(Zero(), x));
  const V e = Exp2(Mul(size, Set1(-0x1.715476p+1f)));  // -2 log2 e
  const V far = Div(Sub(Set1(1.0f), e), Add(Set1(1.0f), e));
  const V signed_far = Select(Equal(Max(x, Zero()), x), far, Sub(Zero(), far));
  // Min gives its second argument for a NaN, which then stays one.
  return Select(Equal(Min(size, Set1(kTanhPolynomial)), Set1(kTanhPolynomial)), signed_far, near);
}

// Scores in units of log2 e, and so is the cap.
LOCKSTEP_VEC void SoftCap(float* scores, int32_t n, float cap) {
  const V factor = Set1(cap), inverse = Set1(1.0f / cap);
  for (int32_t t = 0; t < n; t += 16) {
    Store(scores + t, Mul(factor, Tanh(Mul(Load(scores + t), inverse))));
  }
}

// Scores are taken relative to an integer, so that an exponent is found by one addition and
// differences of the references of splits are exact; not where f32 has no fractions to spare.
constexpr float kLargestReference = 0x1p20f;

LOCKSTEP_VEC float RoundUp(float x) {
  const float nearest = (x + kRoundToInteger) - kRoundToInteger;
  return nearest < x ? nearest + 1.0f : nearest;
}

// Turns the n scores of a row into p; the rest of the last vector becomes +0.
LOCKSTEP_VEC void Softmax(float* scores, int32_t n, float* m, float* l) {
  const V lowest = Set1(-__builtin_inff());
  const int32_t full = n / 16 * 16;
  V max = lowest;
  for (int32_t t = 0; t < full; t += 16) max = Max(Load(scores + t), max);
  if (full < n) {
    const V last = Select(FirstN(n - full), Load(scores + full), lowest);
    Store(scores + full, last);
    max = Max(last, max);
  }
  *m = ReduceMax(max);
  float reference = 0.0f;
  if (*m > -kLargestReference && *m < kLargestReference) {
    *m = reference = RoundUp(*m);
  } else {
    for (int32_t t = 0; t < n; t += 16) Store(scores + t, Sub(Load(scores + t), Set1(*m)));
  }
  // 2^(s - reference), +0 from 126.5 below it: the sum's low bits are the exponent and its bias.
  const V lowest_score = Set1(reference - 127.0f);
  const V shift = Set1(kRoundToInteger + 127.0f - reference);
  V sum = Zero();
  for (int32_t t = 0; t < n; t += 16) {
    const V s = Max(lowest_score, Load(scores + t));  // a NaN stays
    const V shifted = Add(s, shift);
    const V f = Sub(s, Sub(shifted, shift));
    V p = Set1(0x1.5ac9b2p-10f);
    p = Fma(p, f, Set1(0x1.3cec1ap-7f));
    p = Fma(p, f, Set1(0x1.c6b9e8p-5f));
    p = Fma(p, f, Set1(0x1.ebf9b6p-3f));
    p = Fma(p, f, Set1(0x1.62e426p-1f));
    p = Fma(p, f, Set1(1.0f));
    p = Mul(p, PowerFromLowBits(shifted));
    Store(scores + t, p);
    sum = Add(sum, p);
  }
  *l = ReduceAdd(sum);
}

// (m, l, o) of all splits so far, and the next split's. l = 0: nothing was seen.
LOCKSTEP_VEC void FoldSplit(float next_m, float next_l, const float* next_o, int32_t head_dim,
                            float* m, float* l, float* o) {
  if (next_l == 0.0f) return;
  if (*l == 0.0f) {
    *m = next_m;
    *l = next_l;
    for (int32_t d = 0; d < head_dim; d += 8) StoreHalf(o + d, LoadHalf(next_o + d));
    return;
  }
  const V both = Select(FirstN(1), Set1(*m), Set1(next_m));
  const float top = *m > next_m ? *m : next_m;
  float factors[16];
  Store(factors, Exp2(Sub(both, Set1(top))));
  const V a = Set1(factors[0]), b = Set1(factors[1]);
  Store(factors, Fma(Set1(*l), a, Mul(Set1(next_l), b)));
  *m = top;
  *l = factors[0];
  int32_t d = 0;
  for (; d + 16 <= head_dim; d += 16) {
    Store(o + d, Fma(Load(o + d), a, Mul(Load(next_o + d), b)));
  }
  if (d < head_dim) StoreHalf(o + d, Fma(LoadHalf(o + d), a, Mul(LoadHalf(next_o + d), b)));
}

// The sink as one more split, whose one position has no value. Then o / l.
LOCKSTEP_VEC void Finish(const float* o, float m, float l, const float* sink, int32_t head_dim,
                         float* out) {
  V factor = Set1(1.0f);
  if (sink != nullptr) {
    const float logit = *sink * kLog2E;
    const float top = m > logit ? m : logit;
    float factors[16];
    Store(factors, Exp2(Sub(Select(FirstN(1), Set1(m), Set1(logit)), Set1(top))));
    factor = Set1(factors[0]);
    Store(factors, Fma(Set1(l), factor, Set1(factors[1])));
    l = factors[0];
  }
  const V inverse = Set1(1.0f / l);
  int32_t d = 0;
  if (sink == nullptr) {
    for (; d + 16 <= head_dim; d += 16) Store(out + d, Mul(Load(o + d), inverse));
    if (d < head_dim) StoreHalf(out + d, Mul(LoadHalf(o + d), inverse));
    return;
  }
  for (; d + 16 <= head_dim; d += 16) Store(out + d, Mul(Mul(Load(o + d), factor), inverse));
  if (d < head_dim) StoreHalf(out + d, Mul(Mul(LoadHalf(o + d), factor), inverse));
}
