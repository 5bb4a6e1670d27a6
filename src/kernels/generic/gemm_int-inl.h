// gemm_int over the vector vocabulary (vocabulary.md) and the gemm words (gemm_words.md). The tiles
// run over rows and outputs only; IntTile is the one place that says the arithmetic.
//
// A fragment: included inside a target region and the namespace of the instruction set.

// The rows of a block as the tiles read them; index 0 is the block's first row.
template <class Code>
struct IntRows {
  const Code* codes;        // [rows, k]
  int64_t k;                // also the stride of codes
  const float* scales;      // [rows, k / kActGroup]
  const int32_t* zero_sum;  // [rows, k / kActGroup]: (zero + bias) * sum
  const float* scaled_sum;  // [rows, k / group]: scales times sums, over the group
};

// Consecutive K-groups of one panel, each at `bytes` from the last: codes, scales, minimums.
struct IntGroups {
  const std::byte* data;
  size_t bytes;
  size_t code_bytes;
  bool f32_constants;
  int32_t first;  // index of the first group in the row
  int32_t count;
};

LOCKSTEP_VEC V LoadConstants(const std::byte* p, bool f32) {
  return f32 ? Load(reinterpret_cast<const float*>(p))
             : LoadF16(reinterpret_cast<const uint16_t*>(p));
}

// One activation group's product into the accumulator of one row. With the order of groups and the
// minimums in IntTile, all that the arithmetic is.
template <bool kZero>
LOCKSTEP_VEC V AddDot(V sum, I dot, V scale, float act_scale, const int32_t* zero_sum) {
  if constexpr (kZero) dot = Sub(dot, SetI(*zero_sum));
  return Fma(ToF32(dot), Mul(scale, Set1(act_scale)), sum);
}

// Activation group number kPart of one weight group into the accumulators of R rows, which are in
// `resident` or in memory. `scales` and the like point at the group's own entries of row 0.
template <class Dot, int R, int kPart, bool kMin, bool kResident>
LOCKSTEP_VEC void AddPart(const std::byte* data, const typename Dot::Code* codes, int64_t k,
                          V scale, V min, const float* scales, const int32_t* zero_sum,
                          const float* scaled_sum, V (&resident)[R], float* acc) {
  constexpr bool kZero = Dot::kBias != 0 || (Dot::kHasZero && !kMin);
  constexpr bool kLast = kPart == Dot::kGroup / kActGroup - 1;
  const int64_t row_parts = k / kActGroup;
  const int64_t row_groups = k / Dot::kGroup;
  I dot[R];
  Dot::template Run<R, kPart>(data, codes + kPart * kActGroup, k, dot);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    V sum = kResident ? resident[r] : Load(acc + r * kPanel);
    sum = AddDot<kZero>(sum, dot[r], scale, scales[r * row_parts + kPart],
                        zero_sum + r * row_parts + kPart);
    if constexpr (kMin && kLast) sum = Fma(min, Set1(scaled_sum[r * row_groups]), sum);
    if constexpr (kResident) {
      resident[r] = sum;
    } else {
      Store(acc + r * kPanel, sum);
    }
  }
  // Or the compiler would carry them in registers all the same, and spill.
  if constexpr (!kResident) asm volatile("" ::: "memory");
}

// acc [R][16] of rows first_row... over some groups, in ascending order.
template <class Dot, int R, bool kMin>
[[gnu::noinline]] void IntTile(const IntGroups& groups, const IntRows<typename Dot::Code>& rows,
                               int32_t first_row, float* acc) {
  // Accumulators that find no room in registers beside the dots stay in memory, in the first cache.
  constexpr bool kResident = R <= kResidentIntRows;
  constexpr int32_t kParts = Dot::kGroup / kActGroup;
  static_assert(kParts == 1 || kParts == 2);
  const int64_t k = rows.k;
  const bool f32 = Dot::kUnpacked || groups.f32_constants;
  const size_t group_bytes = groups.bytes;
  const std::byte* data = groups.data;
  const std::byte* constants = data + groups.code_bytes;
  const size_t min_at = f32 ? kPanel * sizeof(float) : kPanel * sizeof(uint16_t);
  const auto* codes = rows.codes + first_row * k + int64_t{groups.first} * Dot::kGroup;
  const float* scales = rows.scales + first_row * (k / kActGroup) + groups.first * kParts;
  const int32_t* zero_sum = rows.zero_sum + first_row * (k / kActGroup) + groups.first * kParts;
  const float* scaled_sum = rows.scaled_sum + first_row * (k / Dot::kGroup) + groups.first;

  V resident[R];
  if constexpr (kResident) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) resident[r] = Load(acc + r * kPanel);
  }
  for (int32_t g = 0; g < groups.count; ++g) {
    const V scale = LoadConstants(constants, f32);
    const V min = kMin ? LoadConstants(constants + min_at, f32) : scale;
    AddPart<Dot, R, 0, kMin, kResident>(data, codes, k, scale, min, scales, zero_sum, scaled_sum,
                                        resident, acc);
    if constexpr (kParts == 2) {
      AddPart<Dot, R, 1, kMin, kResident>(data, codes, k, scale, min, scales, zero_sum, scaled_sum,
                                          resident, acc);
    }
    data += group_bytes;
    constants += group_bytes;
    codes += Dot::kGroup;
    scales += kParts;
    zero_sum += kParts;
    ++scaled_sum;
  }
  if constexpr (kResident) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) Store(acc + r * kPanel, resident[r]);
  }
}

// Picks the instance for `count` <= R rows.
template <class Dot, int R, bool kMin>
void IntTileOf(int32_t count, const IntGroups& groups, const IntRows<typename Dot::Code>& rows,
               int32_t first_row, float* acc) {
  if constexpr (R > 1) {
    if (count < R) {
      return IntTileOf<Dot, R - 1, kMin>(count, groups, rows, first_row, acc);
    }
  }
  IntTile<Dot, R, kMin>(groups, rows, first_row, acc);
}

// All rows of a block by some groups, in tiles of nearly equal height.
template <class Dot, bool kMin>
void IntTiles(const IntGroups& groups, const IntRows<typename Dot::Code>& rows, int32_t count,
              float* acc) {
  int32_t tiles = (count + kIntRows - 1) / kIntRows;
  for (int32_t row = 0; row < count; --tiles) {
    const int32_t height = (count - row + tiles - 1) / tiles;
    IntTileOf<Dot, kIntRows, kMin>(height, groups, rows, row, acc + row * kPanel);
    row += height;
  }
}

// Fills the corrections of rows [first_row, first_row + count).
template <class Dot>
void Corrections(const PackedMatrix& w, const QuantizedRows& x, int32_t first_row, int32_t count,
                 int32_t* zero_sum, float* scaled_sum) {
  constexpr int32_t kParts = Dot::kGroup / kActGroup;
  const int32_t factor = w.zero + Dot::kBias;
  const int32_t parts = w.k / kActGroup;
  const int32_t* sums = x.sums + int64_t{first_row} * parts;
  const float* scales = x.scales + int64_t{first_row} * parts;
  for (int64_t h = 0; h < int64_t{count} * parts; ++h) zero_sum[h] = factor * sums[h];
  for (int64_t g = 0; g < int64_t{count} * parts / kParts; ++g) {
    const int64_t h = g * kParts;
    float sum = scales[h] * static_cast<float>(sums[h]);
    if (kParts == 2) sum += scales[h + 1] * static_cast<float>(sums[h + 1]);
    scaled_sum[g] = sum;
  }
}

// One block of rows by all panels of the range. Few rows read the packed panel as it is; many
// share one unpacking of it. Both are the same arithmetic.
template <class Packed, class Unpacked, bool kMin>
void IntRowBlock(const PackedMatrix& w, const QuantizedRows& x, const GemmRange& range,
                 const GemmEpilogue& epilogue, float* out, int64_t out_stride, std::byte* scratch) {
  constexpr int32_t kGroup = Packed::kGroup;
  const int32_t count = range.row_end - range.row_begin;
  float* acc = reinterpret_cast<float*>(scratch);
  std::byte* unpacked = scratch + kAccumulatorBytes;
  auto* zero_sum = reinterpret_cast<int32_t*>(unpacked + kUnpackedBytes);
  auto* scaled_sum = reinterpret_cast<float*>(unpacked + kUnpackedBytes + CorrectionBytes(w));
  Corrections<Packed>(w, x, range.row_begin, count, zero_sum, scaled_sum);
  const int8_t* codes = x.codes + int64_t{range.row_begin} * w.k;
  const float* scales = x.scales + int64_t{range.row_begin} * (w.k / kActGroup);
  const size_t group_bytes = GroupBytes(w);
  const size_t code_bytes = GroupCodeBytes(w.code, kGroup);
  const bool direct = count <= kIntRows;

  IntRows<typename Unpacked::Code> block_rows{nullptr, w.k, scales, zero_sum, scaled_sum};
  if (!direct) {
    if constexpr (sizeof(typename Unpacked::Code) == 2) {
      auto* wide = reinterpret_cast<int16_t*>(unpacked + kUnpackedBytes + 2 * CorrectionBytes(w));
      Unpacked::WidenCodes(codes, int64_t{count} * w.k, wide);
      block_rows.codes = wide;
    } else {
      block_rows.codes = codes;
    }
  }
  constexpr size_t kConstantBytes = kPanel * sizeof(float);
  constexpr size_t kUnpackedGroup = Unpacked::kCodeBytes + kConstantBytes * (kMin ? 2 : 1);
  static_assert(kUnpackedGroup * (kDepthBlock / kGroup) <= kUnpackedBytes);

  for (int32_t panel = range.panel_begin; panel < range.panel_end; ++panel) {
    const std::byte* data = w.data + static_cast<size_t>(panel) * w.panel_bytes;
    std::memset(acc, 0, sizeof(float) * kPanel * static_cast<size_t>(count));
    const int32_t groups = w.k / kGroup;
    if (direct) {
      const IntRows<int8_t> rows{codes, w.k, scales, zero_sum, scaled_sum};
      IntTiles<Packed, kMin>({data, group_bytes, code_bytes, w.f32_scales, 0, groups}, rows, count,
                             acc);
    } else {
      for (int32_t first = 0; first < groups; first += kDepthBlock / kGroup) {
        const int32_t some = std::min(kDepthBlock / kGroup, groups - first);
        for (int32_t g = 0; g < some; ++g) {
          const std::byte* from = data + static_cast<size_t>(first + g) * group_bytes;
          std::byte* to = unpacked + static_cast<size_t>(g) * kUnpackedGroup;
          Unpacked::Unpack(from, to);
          const size_t step = kPanel * (w.f32_scales ? sizeof(float) : 2);
          for (int part = 0; part < (kMin ? 2 : 1); ++part) {
            Store(reinterpret_cast<float*>(to + Unpacked::kCodeBytes) + part * kPanel,
                  LoadConstants(from + code_bytes + part * step, w.f32_scales));
          }
        }
        IntTiles<Unpacked, kMin>(
            {unpacked, kUnpackedGroup, Unpacked::kCodeBytes, true, first, some}, block_rows, count,
            acc);
      }
    }
    StoreRows(acc, count, panel, epilogue, out + range.row_begin * out_stride, out_stride);
  }
}

template <class Packed, class Unpacked>
void IntProduct(const PackedMatrix& w, const QuantizedRows& x, const GemmRange& range,
                const GemmEpilogue& epilogue, float* out, int64_t out_stride, std::byte* scratch) {
  static_assert(Packed::kBias == Unpacked::kBias && Packed::kGroup == Unpacked::kGroup);
  auto* run =
      w.has_min ? IntRowBlock<Packed, Unpacked, true> : IntRowBlock<Packed, Unpacked, false>;
  for (int32_t row = range.row_begin; row < range.row_end; row += kRowBlock) {
    GemmRange block = range;
    block.row_begin = row;
    block.row_end = std::min(range.row_end, row + kRowBlock);
    run(w, x, block, epilogue, out, out_stride, scratch);
  }
}

void GemmInt(const PackedMatrix& w, const QuantizedRows& x, const GemmRange& range,
             const GemmEpilogue& epilogue, float* out, int64_t out_stride, void* scratch) {
  auto* bytes = static_cast<std::byte*>(scratch);
  auto* run = w.code == WeightCode::kU4 ? IntProduct<PackedU4, UnpackedU4>
              : w.group == 16           ? IntProduct<PackedI8<16>, UnpackedI8<16>>
                                        : IntProduct<PackedI8<32>, UnpackedI8<32>>;
  run(w, x, range, epilogue, out, out_stride, bytes);
}
