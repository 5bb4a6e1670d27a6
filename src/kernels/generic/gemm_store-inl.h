// The end of a product: a panel's accumulators, [rows][16], through the epilogue into the output.
// A fragment, as vocabulary.md says.

void StoreRows(const float* acc, int32_t rows, int32_t panel, const GemmEpilogue& epilogue,
               float* out, int64_t out_stride) {
  for (int32_t row = 0; row < rows; ++row) {
    auto y = Load(acc + row * kPanel);
    if (epilogue.bias != nullptr) y = Add(y, Load(epilogue.bias + panel * kPanel));
    float* to = out + row * out_stride + panel * kPanel;
    if (epilogue.add) y = Add(Load(to), y);
    Store(to, y);
  }
}
