#include "model/layers/linear.h"

#include <algorithm>

namespace lockstep {
namespace {

// Of so few rows the memory sets the pace: longer runs through it count for more than balance.
constexpr int32_t kFewRows = 2;
constexpr int32_t kFewRowsItemsPerThread = 2;

// How the rows and panels of a step's products are cut into items.
struct Tiling {
  int32_t row_tiles = 1;
  int32_t rows_per_tile = 0;
  int32_t panels_per_item = 1;

  Tiling(int32_t rows, int32_t panels, int32_t threads) {
    row_tiles = (rows + kRowTile - 1) / kRowTile;
    rows_per_tile = (rows + row_tiles - 1) / row_tiles;
    const int32_t per_thread = rows <= kFewRows ? kFewRowsItemsPerThread : kItemsPerThread;
    const int32_t items = std::max(1, per_thread * threads / row_tiles);
    panels_per_item = std::max(kMinPanels, (panels + items - 1) / items);
  }
  int32_t PanelItems(int32_t panels) const {
    return (panels + panels_per_item - 1) / panels_per_item;
  }
  kernels::GemmRange Range(int32_t row_tile, int32_t panel_item, int32_t rows,
                           int32_t panels) const {
    return {row_tile * rows_per_tile, std::min(rows, (row_tile + 1) * rows_per_tile),
            panel_item * panels_per_item, std::min(panels, (panel_item + 1) * panels_per_item)};
  }
};

}  // namespace

void MultiplyRange(const Activations& x, const Linear& linear, const kernels::GemmRange& range,
                   bool add, float* out, int64_t out_stride, Compute* compute, int32_t worker) {
  const kernels::GemmEpilogue epilogue{linear.bias.empty() ? nullptr : linear.bias.data(), add};
  const kernels::GemmKernels& gemm = compute->kernels().gemm;
  if (linear.integer()) {
    gemm.gemm_int(linear.matrix, x.quantized, range, epilogue, out, out_stride,
                  compute->scratch(worker));
  } else {
    gemm.gemm_float(linear.matrix, x.f32, x.stride, range, epilogue, out, out_stride,
                    compute->scratch(worker));
  }
}

void Multiply(const Activations& x, int32_t rows, std::span<const Product> products,
              Compute* compute) {
  int32_t panels = 0;
  for (const Product& product : products) panels += product.linear->matrix.panels();
  const Tiling tiling(rows, panels, compute->threads());
  int32_t panel_items = 0;
  for (const Product& product : products) {
    panel_items += tiling.PanelItems(product.linear->matrix.panels());
  }
  compute->pool().ParallelFor(panel_items * tiling.row_tiles, [&](int32_t item, int32_t worker) {
    int32_t panel_item = item / tiling.row_tiles;
    size_t p = 0;
    while (panel_item >= tiling.PanelItems(products[p].linear->matrix.panels())) {
      panel_item -= tiling.PanelItems(products[p++].linear->matrix.panels());
    }
    const Product& product = products[p];
    const kernels::GemmRange range =
        tiling.Range(item % tiling.row_tiles, panel_item, rows, product.linear->matrix.panels());
    MultiplyRange(x, *product.linear, range, product.add, product.out, product.out_stride, compute,
                  worker);
  });
}

void MultiplyGatedRange(const Activations& x, const Linear& gate, const Linear& up, Gate activation,
                        const kernels::GemmRange& range, float* out, float* up_out,
                        Compute* compute, int32_t worker) {
  const kernels::ElementwiseKernels& elementwise = compute->kernels().elementwise;
  const auto gate_mul = activation == Gate::kGeluTanh ? elementwise.gelu_mul : elementwise.silu_mul;
  const int64_t stride = PaddedOutputs(gate.matrix.n);
  MultiplyRange(x, gate, range, false, out, stride, compute, worker);
  MultiplyRange(x, up, range, false, up_out, stride, compute, worker);
  const int64_t first = int64_t{range.panel_begin} * kernels::kPanel;
  const int32_t width = (range.panel_end - range.panel_begin) * kernels::kPanel;
  for (int32_t t = range.row_begin; t < range.row_end; ++t) {
    float* row = out + t * stride + first;
    gate_mul(row, up_out + t * stride + first, width, row);
  }
}

void MultiplyGated(const Activations& x, int32_t rows, const Linear& gate, const Linear& up,
                   Gate activation, float* out, float* up_out, Compute* compute) {
  const int32_t panels = gate.matrix.panels();
  const Tiling tiling(rows, panels, compute->threads());
  compute->pool().ParallelFor(
      tiling.PanelItems(panels) * tiling.row_tiles, [&](int32_t item, int32_t worker) {
        const kernels::GemmRange range =
            tiling.Range(item % tiling.row_tiles, item / tiling.row_tiles, rows, panels);
        MultiplyGatedRange(x, gate, up, activation, range, out, up_out, compute, worker);
      });
}

}  // namespace lockstep
