// The kernels of recurrent.h over the vocabulary (generic/vocabulary.md). A fragment: included
// after math-inl.h, inside the namespace of an instruction set.

LOCKSTEP_VEC V Silu(V x) { return Div(x, Add(Set1(1.0f), Exp(Sub(Zero(), x)))); }

void ShortConv(const float* const* rows, const float* weights, int64_t weight_stride, int32_t taps,
               int32_t n, float* out) {
  int32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    V sum = Mul(Load(weights + i), Load(rows[0] + i));
    for (int32_t j = 1; j < taps; ++j) {
      sum = Fma(Load(weights + j * weight_stride + i), Load(rows[j] + i), sum);
    }
    Store(out + i, Silu(sum));
  }
  const int32_t rest = n - i;
  if (rest == 0) return;
  V sum = Mul(LoadN(weights + i, rest), LoadN(rows[0] + i, rest));
  for (int32_t j = 1; j < taps; ++j) {
    sum = Fma(LoadN(weights + j * weight_stride + i, rest), LoadN(rows[j] + i, rest), sum);
  }
  StoreN(out + i, Silu(sum), rest);
}

// S^T k of 16 columns.
LOCKSTEP_VEC V Recall(const float* state, const float* k, int32_t k_dim) {
  V sum0 = Zero(), sum1 = Zero(), sum2 = Zero(), sum3 = Zero();
  for (int32_t i = 0; i < k_dim; i += 4, state += 64) {
    Accumulate(Set1(k[i]), Load(state), &sum0);
    Accumulate(Set1(k[i + 1]), Load(state + 16), &sum1);
    Accumulate(Set1(k[i + 2]), Load(state + 32), &sum2);
    Accumulate(Set1(k[i + 3]), Load(state + 48), &sum3);
  }
  return Add(Add(sum0, sum1), Add(sum2, sum3));
}

// Writes the next state of 16 columns, and gives S^T q.
LOCKSTEP_VEC V Advance(const float* state, V decay, const float* k, V delta, const float* q,
                       int32_t k_dim, float* next) {
  V sum0 = Zero(), sum1 = Zero();
  for (int32_t i = 0; i < k_dim; i += 2, state += 32, next += 32) {
    const V row0 = Fma(Set1(k[i]), delta, Mul(decay, Load(state)));
    Store(next, row0);
    Accumulate(Set1(q[i]), row0, &sum0);
    const V row1 = Fma(Set1(k[i + 1]), delta, Mul(decay, Load(state + 16)));
    Store(next + 16, row1);
    Accumulate(Set1(q[i + 1]), row1, &sum1);
  }
  return Add(sum0, sum1);
}

void DeltaRule(const DeltaRuleSpan& s) {
  // Panel after panel, each for all tokens: a panel stays in the first cache.
  const int64_t panel_floats = int64_t{s.k_dim} * 16;
  for (int32_t column = 0; column < s.v_dim; column += 16) {
    const int64_t panel = column / 16 * panel_floats;
    float* next = s.new_state + panel;
    const float* state = next;
    if (s.state != nullptr) {
      state = s.state + panel;
    } else {
      for (int64_t i = 0; i < panel_floats; i += 16) Store(next + i, Zero());
    }
    for (int32_t t = 0; t < s.tokens; ++t) {
      const float* k = s.k + t * s.stride;
      const V decay = Set1(s.decay[t * s.gate_stride]);
      const V seen = Mul(decay, Recall(state, k, s.k_dim));
      const V wanted = Load(s.v + t * s.stride + column);
      const V delta = Mul(Set1(s.beta[t * s.gate_stride]), Sub(wanted, seen));
      const V read = Advance(state, decay, k, delta, s.q + t * s.stride, s.k_dim, next);
      Store(s.out + t * s.out_stride + column, read);
      state = next;
    }
  }
}
