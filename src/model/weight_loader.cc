#include "model/weight_loader.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "model/layers/embedding.h"
#include "quant/packed_weights.h"

namespace lockstep {
namespace {

constexpr int32_t kPanelsPerItem = 16;

// How the tensor is stored, when it can be computed with.
Result<const quant::Format*> FormatOf(const Checkpoint& checkpoint, const TensorView& tensor) {
  const quant::Format* format = quant::FindFormat(DTypeName(tensor.dtype));
  if (format == nullptr) {
    return Unimplemented(fmt::format("{}: tensor {} is {}, which cannot be computed with",
                                     checkpoint.path(), tensor.name, DTypeName(tensor.dtype)),
                         tensor.name);
  }
  return format;
}

}  // namespace

Result<const TensorView*> WeightLoader::Take(const std::string& name, std::vector<int64_t> shape) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorView* tensor, checkpoint_->Get(name));
  if (tensor->shape != shape) {
    return DataLoss(fmt::format("{}: tensor {} has the shape {}; expected {}", checkpoint_->path(),
                                name, ShapeText(tensor->shape), ShapeText(shape)),
                    name);
  }
  if (used_.insert(name).second) {
    hash_ = XXH3_64bits_withSeed(tensor->data.data(), tensor->data.size(), hash_);
  }
  return tensor;
}

Result<Linear> WeightLoader::LoadLinear(const std::string& name, int32_t n, int32_t k,
                                        const LinearOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorView* tensor, Take(name, {n, k}));
  LOCKSTEP_ASSIGN_OR_RETURN(const quant::Format* format, FormatOf(*checkpoint_, *tensor));
  if (compute_class_ == ComputeClass::kInt8 && !format->integer()) {
    return FailedPrecondition(
        fmt::format("{}: tensor {} is {}; --compute int8 needs quantised weights",
                    checkpoint_->path(), name, format->name),
        name);
  }
  const bool f32 = compute_class_ == ComputeClass::kF32;
  const quant::Source source{format, {{tensor->data.data()}}, n, k, options.rows};
  LOCKSTEP_ASSIGN_OR_RETURN(quant::PackedWeights packed,
                            quant::PackedWeights::Allocate(source, f32, memory_.get()));
  const int32_t panels = packed.matrix().panels();
  pool_.BeginStep();
  pool_.ParallelFor((panels + kPanelsPerItem - 1) / kPanelsPerItem, [&](int32_t item, int32_t) {
    packed.PackPanels(source, item * kPanelsPerItem, std::min(panels, (item + 1) * kPanelsPerItem));
  });
  pool_.EndStep();

  Linear linear;
  linear.matrix = packed.matrix();
  linear.memory = memory_;
  if (!options.bias.empty() && (options.needs_bias || Has(options.bias))) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<float> bias, LoadVector(options.bias, n));
    linear.bias.assign(PaddedOutputs(n), 0.0f);
    for (int32_t i = 0; i < n; ++i)
      linear.bias[i] = bias[options.rows.empty() ? i : options.rows[i]];
  }
  packed_bytes_ += linear.bytes();
  integer_products_ = integer_products_ || linear.integer();
  return linear;
}

Result<std::vector<float>> WeightLoader::LoadVector(const std::string& name, int32_t n) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorView* tensor, Take(name, {n}));
  LOCKSTEP_ASSIGN_OR_RETURN(const quant::Format* format, FormatOf(*checkpoint_, *tensor));
  std::vector<float> values(n);
  quant::ExpandRow({format, {{tensor->data.data()}}, 1, n, {}}, 0, values.data());
  return values;
}

Result<Embedding> WeightLoader::LoadEmbedding(const std::string& name, int32_t vocab_size,
                                              int32_t d_model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorView* tensor, Take(name, {vocab_size, d_model}));
  LOCKSTEP_ASSIGN_OR_RETURN(const quant::Format* format, FormatOf(*checkpoint_, *tensor));
  return Embedding(checkpoint_, {format, {{tensor->data.data()}}, vocab_size, d_model, {}});
}

Status WeightLoader::CheckAllUsed() const {
  for (const TensorView& tensor : checkpoint_->tensors()) {
    if (!used_.contains(tensor.name)) {
      return Unimplemented(fmt::format("{}: tensor {} has no place in this architecture",
                                       checkpoint_->path(), tensor.name),
                           tensor.name);
    }
  }
  return OkStatus();
}

}  // namespace lockstep
