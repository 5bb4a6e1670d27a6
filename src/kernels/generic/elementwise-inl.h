// The kernels of elementwise.h over the vocabulary (generic/vocabulary.md). A fragment: included
// after math-inl.h, inside the namespace of an instruction set. Element i is lane i % 16
// everywhere; a tail is one vector whose missing lanes are +0 and are not stored.

// The sum over i of x[i]^2: lanes, then the tree.
LOCKSTEP_VEC float SumOfSquares(const float* x, int32_t n) {
  V sum = Zero();
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const V v = Load(x + i);
    sum = Fma(v, v, sum);
  }
  if (i < n) {
    const V v = LoadN(x + i, n - i);
    sum = Fma(v, v, sum);
  }
  return ReduceAdd(sum);
}

void RmsNorm(const float* x, const float* weight, float eps, int32_t n, float* out) {
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  const V r = Set1(1.0f / __builtin_sqrtf(mean + eps));
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, Mul(Mul(Load(x + i), r), Load(weight + i)));
  const int32_t rest = n - i;
  if (rest > 0) StoreN(out + i, Mul(Mul(LoadN(x + i, rest), r), LoadN(weight + i, rest)), rest);
}

LOCKSTEP_VEC V SiluMulVector(V gate, V up) {
  const V denominator = Add(Set1(1.0f), Exp(Sub(Zero(), gate)));
  return Mul(Div(gate, denominator), up);
}

void SiluMul(const float* gate, const float* up, int32_t n, float* out) {
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, SiluMulVector(Load(gate + i), Load(up + i)));
  const int32_t rest = n - i;
  if (rest > 0) StoreN(out + i, SiluMulVector(LoadN(gate + i, rest), LoadN(up + i, rest)), rest);
}

// -2 u = x * (a + b x^2), where a is -2 sqrt(2 / pi) and b is that times 0.044715.
LOCKSTEP_VEC V GeluMulVector(V gate, V up) {
  const V slope = Fma(Mul(gate, gate), Set1(-0x1.2444f2p-4f), Set1(-0x1.988454p+0f));
  const V denominator = Add(Set1(1.0f), Exp(Mul(gate, slope)));
  return Mul(Div(gate, denominator), up);
}

void GeluMul(const float* gate, const float* up, int32_t n, float* out) {
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, GeluMulVector(Load(gate + i), Load(up + i)));
  const int32_t rest = n - i;
  if (rest > 0) StoreN(out + i, GeluMulVector(LoadN(gate + i, rest), LoadN(up + i, rest)), rest);
}

LOCKSTEP_VEC V SigmoidMulVector(V gate, V x) {
  return Div(x, Add(Set1(1.0f), Exp(Sub(Zero(), gate))));
}

void SigmoidMul(const float* gate, const float* x, int32_t n, float* out) {
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, SigmoidMulVector(Load(gate + i), Load(x + i)));
  const int32_t rest = n - i;
  if (rest > 0) StoreN(out + i, SigmoidMulVector(LoadN(gate + i, rest), LoadN(x + i, rest)), rest);
}

void Rope(float* x, const float* cos, const float* sin, int32_t half) {
  float* y = x + half;
  int32_t i = 0;
  for (; i + 16 <= half; i += 16) {
    const V a = Load(x + i), b = Load(y + i), c = Load(cos + i), s = Load(sin + i);
    Store(x + i, NegFma(b, s, Mul(a, c)));
    Store(y + i, Fma(a, s, Mul(b, c)));
  }
  const int32_t rest = half - i;
  if (rest > 0) {
    const V a = LoadN(x + i, rest), b = LoadN(y + i, rest);
    const V c = LoadN(cos + i, rest), s = LoadN(sin + i, rest);
    StoreN(x + i, NegFma(b, s, Mul(a, c)), rest);
    StoreN(y + i, Fma(a, s, Mul(b, c)), rest);
  }
}

void AddTo(const float* y, int32_t n, float* x) {
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(x + i, Add(Load(x + i), Load(y + i)));
  const int32_t rest = n - i;
  if (rest > 0) StoreN(x + i, Add(LoadN(x + i, rest), LoadN(y + i, rest)), rest);
}

void Scale(float factor, int32_t n, float* x) {
  const V f = Set1(factor);
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(x + i, Mul(Load(x + i), f));
  const int32_t rest = n - i;
  if (rest > 0) StoreN(x + i, Mul(LoadN(x + i, rest), f), rest);
}

// The first element that is a NaN, or that equals `value`.
LOCKSTEP_VEC int32_t FindFirst(const float* x, int32_t n, bool nan, float value) {
  const V wanted = Set1(value);
  for (int32_t i = 0; i < n; i += 16) {
    const int32_t count = n - i < 16 ? n - i : 16;
    const V v = count == 16 ? Load(x + i) : LoadN(x + i, count);
    const uint32_t lanes = (1u << count) - 1u;
    const uint32_t hits = Bits(nan ? IsNan(v) : Equal(v, wanted)) & lanes;
    if (hits != 0) return i + __builtin_ctz(hits);
  }
  return 0;
}

MaxIndex MaxElement(const float* x, int32_t n) {
  // Two chains are enough to hide the latency of Max; a maximum has no order.
  const V lowest = Set1(-__builtin_inff());
  V max0 = lowest, max1 = lowest;
  M nan = NoLanes();
  int32_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const V a = Load(x + i), b = Load(x + i + 16);
    nan = Or(nan, Or(IsNan(a), IsNan(b)));
    max0 = Max(a, max0);
    max1 = Max(b, max1);
  }
  for (; i < n; i += 16) {
    const V v = Select(FirstN(n - i), n - i < 16 ? LoadN(x + i, n - i) : Load(x + i), lowest);
    nan = Or(nan, IsNan(v));
    max0 = Max(v, max0);
  }
  const bool any_nan = Bits(nan) != 0;
  // Read back from x, so that the sign of a zero is that of the element and not of a lane's order.
  const int32_t index = FindFirst(x, n, any_nan, ReduceMax(Max(max0, max1)));
  return {x[index], index};
}

float SumExp(const float* x, float max, int32_t n) {
  const V m = Set1(max);
  V sum = Zero();
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) sum = Add(sum, Exp(Sub(Load(x + i), m)));
  const int32_t rest = n - i;
  if (rest > 0) sum = Add(sum, Select(FirstN(rest), Exp(Sub(LoadN(x + i, rest), m)), Zero()));
  return ReduceAdd(sum);
}

void ExpOf(const float* x, float max, float inverse_temperature, int32_t n, float* out) {
  const V m = Set1(max), t = Set1(inverse_temperature);
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, Exp(Mul(Sub(Load(x + i), m), t)));
  const int32_t rest = n - i;
  if (rest > 0) StoreN(out + i, Exp(Mul(Sub(LoadN(x + i, rest), m), t)), rest);
}
