// gemm_float over the vector vocabulary and the gemm words. Every output is one chain of fused
// multiply-adds over ascending k. Few rows read several packed panels side by side, since one
// panel's chains are too few to hide their latency; many rows share one widening to f32.
//
// A fragment: included inside a target region and the namespace of the instruction set.

template <WeightCode kCode>
inline V LoadWeights(const std::byte* p) {
  if constexpr (kCode == WeightCode::kF32) return Load(reinterpret_cast<const float*>(p));
  if constexpr (kCode == WeightCode::kF16) {
    return LoadF16(reinterpret_cast<const uint16_t*>(p));
  }
  if constexpr (kCode == WeightCode::kBF16) {
    return Load(reinterpret_cast<const uint16_t*>(p));
  }
}

// acc [P][R][16] += rows x[R] by P panels over `depth` k's; panels lie `panel_stride` bytes apart,
// accumulators of panels `acc_stride` floats.
template <WeightCode kCode, int R, int P>
[[gnu::noinline]] void FloatTile(const std::byte* weights, size_t panel_stride, const float* x,
                                 int64_t x_stride, int32_t depth, float* acc, int64_t acc_stride) {
  constexpr size_t kStep = kPanel * FloatBytes(kCode);
  V sum[P * R];
#pragma GCC unroll 16
  for (int i = 0; i < P * R; ++i) {
    sum[i] = Load(acc + (i / R) * acc_stride + (i % R) * kPanel);
  }
  for (int32_t k = 0; k < depth; ++k) {
    V w[P];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) w[p] = LoadWeights<kCode>(weights + p * panel_stride);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto value = Set1(x[r * x_stride + k]);
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) sum[p * R + r] = Fma(value, w[p], sum[p * R + r]);
    }
    weights += kStep;
  }
#pragma GCC unroll 16
  for (int i = 0; i < P * R; ++i) {
    Store(acc + (i / R) * acc_stride + (i % R) * kPanel, sum[i]);
  }
}

// How many packed panels `rows` rows read side by side.
constexpr int32_t FewRowsPanels(int32_t rows) {
  return std::min(kPanelBlock, std::max(1, kFloatChains / rows));
}

// Picks the instance for `rows` <= R rows and P panels or one. P = 0: as FewRowsPanels says.
template <WeightCode kCode, int R, int P>
void FloatTileOf(int32_t rows, int32_t panels, const std::byte* weights, size_t panel_stride,
                 const float* x, int64_t x_stride, int32_t depth, float* acc, int64_t acc_stride) {
  if constexpr (R > 1) {
    if (rows < R) {
      return FloatTileOf<kCode, R - 1, P>(rows, panels, weights, panel_stride, x, x_stride, depth,
                                          acc, acc_stride);
    }
  }
  constexpr int kPanels = P != 0 ? P : FewRowsPanels(R);
  auto* run = panels == kPanels ? FloatTile<kCode, R, kPanels> : FloatTile<kCode, R, 1>;
  run(weights, panel_stride, x, x_stride, depth, acc, acc_stride);
}

template <WeightCode kCode>
void FloatRowBlock(const PackedMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                   const GemmEpilogue& epilogue, float* out, int64_t out_stride,
                   std::byte* scratch) {
  constexpr int64_t kAccStride = int64_t{kRowBlock} * kPanel;
  const int32_t count = range.row_end - range.row_begin;
  x += range.row_begin * x_stride;
  out += range.row_begin * out_stride;
  float* acc = reinterpret_cast<float*>(scratch);
  auto* unpacked = reinterpret_cast<float*>(scratch + kAccumulatorBytes);
  constexpr int64_t kUnpackedStride = int64_t{kDepthBlock} * kPanel;
  const bool direct = count <= kFewFloatRows;
  const int32_t side_by_side = direct ? FewRowsPanels(count) : kFloatPanels;

  for (int32_t panel = range.panel_begin; panel < range.panel_end;) {
    // All of `side_by_side`, or single ones at the end.
    const int32_t panels = range.panel_end - panel >= side_by_side ? side_by_side : 1;
    const std::byte* data = w.data + static_cast<size_t>(panel) * w.panel_bytes;
    for (int32_t p = 0; p < panels; ++p) {
      std::memset(acc + p * kAccStride, 0, sizeof(float) * kPanel * static_cast<size_t>(count));
    }
    if (direct) {
      FloatTileOf<kCode, kFewFloatRows, 0>(count, panels, data, w.panel_bytes, x, x_stride, w.k,
                                           acc, kAccStride);
    } else {
      for (int32_t first = 0; first < w.k; first += kDepthBlock) {
        const int32_t depth = std::min(kDepthBlock, w.k - first);
        for (int32_t p = 0; p < panels; ++p) {
          const std::byte* from = data + static_cast<size_t>(p) * w.panel_bytes +
                                  static_cast<size_t>(first) * kPanel * FloatBytes(kCode);
          float* to = unpacked + p * kUnpackedStride;
          for (int32_t k = 0; k < depth; ++k) {
            Store(to + k * kPanel, LoadWeights<kCode>(from + k * (kPanel * FloatBytes(kCode))));
          }
        }
        int32_t tiles = (count + kFloatRows - 1) / kFloatRows;
        for (int32_t row = 0; row < count; --tiles) {
          const int32_t height = (count - row + tiles - 1) / tiles;
          FloatTileOf<WeightCode::kF32, kFloatRows, kFloatPanels>(
              height, panels, reinterpret_cast<const std::byte*>(unpacked),
              kUnpackedStride * sizeof(float), x + row * x_stride + first, x_stride, depth,
              acc + row * kPanel, kAccStride);
          row += height;
        }
      }
    }
    for (int32_t p = 0; p < panels; ++p) {
      StoreRows(acc + p * kAccStride, count, panel + p, epilogue, out, out_stride);
    }
    panel += panels;
  }
}

void GemmFloat(const PackedMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
               const GemmEpilogue& epilogue, float* out, int64_t out_stride, void* scratch) {
  auto* run = w.code == WeightCode::kF32    ? FloatRowBlock<WeightCode::kF32>
              : w.code == WeightCode::kBF16 ? FloatRowBlock<WeightCode::kBF16>
                                            : FloatRowBlock<WeightCode::kF16>;
  for (int32_t row = range.row_begin; row < range.row_end; row += kRowBlock) {
    GemmRange block = range;
    block.row_begin = row;
    block.row_end = std::min(range.row_end, row + kRowBlock);
    run(w, x, x_stride, block, epilogue, out, out_stride, static_cast<std::byte*>(scratch));
  }
}
