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

// Consecutive K-groups of a panel, each at `bytes` from the last: codes, scales, minimums. The same
// groups of the next panel that is read side by side are `panel_bytes` further.
struct IntGroups {
  const std::byte* data;
  size_t panel_bytes;
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

// acc [P][R][16] of rows first_row... and P panels over some groups, in ascending order. The
// accumulators of panels are kRowBlock rows apart.
template <class Dot, int R, int P, bool kMin>
[[gnu::noinline]] void IntTile(const IntGroups& groups, const IntRows<typename Dot::Code>& rows,
                               int32_t first_row, float* acc) {
  // Accumulators that find no room in registers beside the dots stay in memory, in the first cache.
  constexpr bool kResident = R <= kResidentIntRows;
  constexpr int32_t kParts = Dot::kGroup / kActGroup;
  constexpr int64_t kAccStride = int64_t{kRowBlock} * kPanel;
  static_assert(kParts == 1 || kParts == 2);
  const int64_t k = rows.k;
  const bool f32 = Dot::kUnpacked || groups.f32_constants;
  const size_t group_bytes = groups.bytes;
  const size_t panel_bytes = groups.panel_bytes;
  const size_t code_bytes = groups.code_bytes;
  const std::byte* data = groups.data;
  const size_t min_at = f32 ? kPanel * sizeof(float) : kPanel * sizeof(uint16_t);
  const auto* codes = rows.codes + first_row * k + int64_t{groups.first} * Dot::kGroup;
  const float* scales = rows.scales + first_row * (k / kActGroup) + groups.first * kParts;
  const int32_t* zero_sum = rows.zero_sum + first_row * (k / kActGroup) + groups.first * kParts;
  const float* scaled_sum = rows.scaled_sum + first_row * (k / Dot::kGroup) + groups.first;

  V resident[P][R];
  if constexpr (kResident) {
#pragma GCC unroll 16
    for (int i = 0; i < P * R; ++i) {
      resident[i / R][i % R] = Load(acc + i / R * kAccStride + i % R * kPanel);
    }
  }
  for (int32_t g = 0; g < groups.count; ++g) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      const std::byte* from = data + p * panel_bytes;
      const std::byte* constants = from + code_bytes;
      const V scale = LoadConstants(constants, f32);
      const V min = kMin ? LoadConstants(constants + min_at, f32) : scale;
      float* to = acc + p * kAccStride;
      AddPart<Dot, R, 0, kMin, kResident>(from, codes, k, scale, min, scales, zero_sum, scaled_sum,
                                          resident[p], to);
      if constexpr (kParts == 2) {
        AddPart<Dot, R, 1, kMin, kResident>(from, codes, k, scale, min, scales, zero_sum,
                                            scaled_sum, resident[p], to);
      }
    }
    data += group_bytes;
    codes += Dot::kGroup;
    scales += kParts;
    zero_sum += kParts;
    ++scaled_sum;
  }
  if constexpr (kResident) {
#pragma GCC unroll 16
    for (int i = 0; i < P * R; ++i) {
      Store(acc + i / R * kAccStride + i % R * kPanel, resident[i / R][i % R]);
    }
  }
}

// How many packed panels `rows` rows read side by side: memory gives more to several streams.
constexpr int32_t FewIntRowsPanels(int32_t rows) { return rows > 2 ? 1 : 4 / rows; }

// Picks the instance for `count` <= R rows and as many panels as the above says, or one.
template <class Dot, int R, bool kMin>
void IntTileOf(int32_t count, int32_t panels, const IntGroups& groups,
               const IntRows<typename Dot::Code>& rows, int32_t first_row, float* acc) {
  if constexpr (R > 1) {
    if (count < R) {
      return IntTileOf<Dot, R - 1, kMin>(count, panels, groups, rows, first_row, acc);
    }
  }
  constexpr int kPanels = Dot::kUnpacked ? 1 : FewIntRowsPanels(R);
  auto* run = panels == kPanels ? IntTile<Dot, R, kPanels, kMin> : IntTile<Dot, R, 1, kMin>;
  run(groups, rows, first_row, acc);
}

// Packed bytes that are read next, to be fetched while there is work to do.
struct Ahead {
  const std::byte* data;
  size_t bytes;
};

LOCKSTEP_VEC void Fetch(const std::byte* from, size_t bytes) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(from + at);
}

// All rows of a block by some groups of `panels` panels, in tiles of nearly equal height. Tiles
// after the first, which may itself wait for memory, fetch a share of what comes next.
template <class Dot, bool kMin>
void IntTiles(const IntGroups& groups, const IntRows<typename Dot::Code>& rows, int32_t count,
              int32_t panels, Ahead ahead, float* acc) {
  int32_t tiles = (count + kIntRows - 1) / kIntRows;
  const size_t share = tiles > 1 ? ahead.bytes / (tiles - 1) + 1 : 0;
  for (int32_t row = 0; row < count; --tiles) {
    if (row > 0) {
      const size_t now = std::min(share, ahead.bytes);
      Fetch(ahead.data, now);
      ahead = {ahead.data + now, ahead.bytes - now};
    }
    const int32_t height = (count - row + tiles - 1) / tiles;
    IntTileOf<Dot, kIntRows, kMin>(height, panels, groups, rows, row, acc + row * kPanel);
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

// A block of rows as the tiles take it, and where its parts are in the scratch.
struct IntBlock {
  int32_t panel_begin;
  int32_t panel_end;
  int32_t count;
  const int8_t* codes;
  const float* scales;
  float* acc;
  std::byte* unpacked;
  int32_t* zero_sum;
  float* scaled_sum;
  int16_t* wide;
};

// `panels` packed panels, `step` apart, by at most kFewIntRows rows; several panels only by rows of
// one tile.
template <class Packed, bool kMin>
void IntFewRowsTile(const PackedMatrix& w, const IntBlock& block, int32_t panel, int32_t panels,
                    int32_t step, const GemmEpilogue& epilogue, float* out, int64_t out_stride) {
  constexpr int64_t kAccStride = int64_t{kRowBlock} * kPanel;
  const IntRows<int8_t> rows{block.codes, w.k, block.scales, block.zero_sum, block.scaled_sum};
  const IntGroups groups{w.data + static_cast<size_t>(panel) * w.panel_bytes,
                         static_cast<size_t>(step) * w.panel_bytes,
                         GroupBytes(w),
                         GroupCodeBytes(w.code, w.group),
                         w.f32_scales,
                         0,
                         w.k / w.group};
  for (int32_t p = 0; p < panels; ++p) {
    std::memset(block.acc + p * kAccStride, 0, sizeof(float) * kPanel * block.count);
  }
  const bool last = panel + 1 == block.panel_end;
  IntTiles<Packed, kMin>(groups, rows, block.count, panels,
                         {groups.data + w.panel_bytes, last ? 0 : w.panel_bytes}, block.acc);
  for (int32_t p = 0; p < panels; ++p) {
    StoreRows(block.acc + p * kAccStride, block.count, panel + p * step, epilogue, out, out_stride);
  }
}

// At most kFewIntRows rows by the panels of the range, read as they are packed: as several streams
// when they are long enough for the memory to take notice, then as one.
template <class Packed, bool kMin>
void IntFewRows(const PackedMatrix& w, const IntBlock& block, const GemmEpilogue& epilogue,
                float* out, int64_t out_stride) {
  constexpr size_t kLongStream = 16384;
  int32_t panel = block.panel_begin;
  const int32_t streams = block.count <= kIntRows ? FewIntRowsPanels(block.count) : 1;
  const int32_t step = (block.panel_end - panel) / streams;
  if (streams > 1 && static_cast<size_t>(step) * w.panel_bytes >= kLongStream) {
    for (int32_t i = 0; i < step; ++i) {
      IntFewRowsTile<Packed, kMin>(w, block, panel + i, streams, step, epilogue, out, out_stride);
    }
    panel += streams * step;
  }
  for (; panel < block.panel_end; ++panel) {
    IntFewRowsTile<Packed, kMin>(w, block, panel, 1, 0, epilogue, out, out_stride);
  }
}

// Any number of rows by the panels of the range; they share one unpacking.
template <class Unpacked, bool kMin>
void IntManyRows(const PackedMatrix& w, const IntBlock& block, const GemmEpilogue& epilogue,
                 float* out, int64_t out_stride) {
  constexpr size_t kConstantBytes = kPanel * sizeof(float);
  constexpr size_t kUnpackedGroup = Unpacked::kCodeBytes + kConstantBytes * (kMin ? 2 : 1);
  constexpr int32_t kGroups = kDepthBlock / Unpacked::kGroup;
  static_assert(kUnpackedGroup * kGroups <= kUnpackedBytes);
  IntRows<typename Unpacked::Code> rows{nullptr, w.k, block.scales, block.zero_sum,
                                        block.scaled_sum};
  if constexpr (sizeof(typename Unpacked::Code) == 2) {
    Unpacked::WidenCodes(block.codes, int64_t{block.count} * w.k, block.wide);
    rows.codes = block.wide;
  } else {
    rows.codes = block.codes;
  }
  const size_t code_bytes = GroupCodeBytes(w.code, w.group);
  const size_t constant_bytes = kPanel * (w.f32_scales ? sizeof(float) : sizeof(uint16_t));
  const std::byte* const end = w.data + static_cast<size_t>(block.panel_end) * w.panel_bytes;
  for (int32_t panel = block.panel_begin; panel < block.panel_end; ++panel) {
    const std::byte* from = w.data + static_cast<size_t>(panel) * w.panel_bytes;
    std::memset(block.acc, 0, sizeof(float) * kPanel * block.count);
    for (int32_t first = 0; first < w.k / w.group; first += kGroups) {
      const int32_t count = std::min(kGroups, w.k / w.group - first);
      for (int32_t g = 0; g < count; ++g, from += GroupBytes(w)) {
        std::byte* to = block.unpacked + g * kUnpackedGroup;
        Unpacked::Unpack(from, to);
        for (int part = 0; part < (kMin ? 2 : 1); ++part) {
          Store(reinterpret_cast<float*>(to + Unpacked::kCodeBytes) + part * kPanel,
                LoadConstants(from + code_bytes + part * constant_bytes, w.f32_scales));
        }
      }
      // `from` is now where the next groups are: of this panel, or of the next one behind it.
      const Ahead ahead{from, std::min(kGroups * GroupBytes(w), static_cast<size_t>(end - from))};
      IntTiles<Unpacked, kMin>(
          {block.unpacked, 0, kUnpackedGroup, Unpacked::kCodeBytes, true, first, count}, rows,
          block.count, 1, ahead, block.acc);
    }
    StoreRows(block.acc, block.count, panel, epilogue, out, out_stride);
  }
}

// One block of rows by all panels of the range. Both ways are the same arithmetic.
template <class Packed, class Unpacked, bool kMin>
void IntRowBlock(const PackedMatrix& w, const QuantizedRows& x, const GemmRange& range,
                 const GemmEpilogue& epilogue, float* out, int64_t out_stride, std::byte* scratch) {
  IntBlock block;
  block.panel_begin = range.panel_begin;
  block.panel_end = range.panel_end;
  block.count = range.row_end - range.row_begin;
  block.codes = x.codes + int64_t{range.row_begin} * w.k;
  block.scales = x.scales + int64_t{range.row_begin} * (w.k / kActGroup);
  block.acc = reinterpret_cast<float*>(scratch);
  block.unpacked = scratch + kAccumulatorBytes;
  block.zero_sum = reinterpret_cast<int32_t*>(block.unpacked + kUnpackedBytes);
  block.scaled_sum = reinterpret_cast<float*>(block.unpacked + kUnpackedBytes + CorrectionBytes(w));
  block.wide = reinterpret_cast<int16_t*>(block.unpacked + kUnpackedBytes + 2 * CorrectionBytes(w));
  Corrections<Packed>(w, x, range.row_begin, block.count, block.zero_sum, block.scaled_sum);
  out += range.row_begin * out_stride;
  if (block.count <= kFewIntRows) {
    IntFewRows<Packed, kMin>(w, block, epilogue, out, out_stride);
  } else {
    IntManyRows<Unpacked, kMin>(w, block, epilogue, out, out_stride);
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
