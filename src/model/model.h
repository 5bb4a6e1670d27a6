// Model: packed weights and the forward pass of one architecture. It is not the executor: it
// samples nothing and owns no cache. Adding an architecture: a folder under arch/ and a line in
// arch/registry.cc.
//
// Thread-safety: immutable after loading but for the step buffers; Forward and Logits from one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/attention.h"
#include "model/batch.h"
#include "model/compute.h"
#include "weights/checkpoint.h"

namespace lockstep {

// How the products of a model are computed; chosen at load, for every number of rows.
enum class ComputeClass {
  kAuto,  // integer dot products for quantised weights, f32 for float weights
  kInt8,  // as kAuto, and an error when a weight is not quantised
  kF32,   // all in f32, quantised weights expanded
};

struct LoadOptions {
  ComputeClass compute_class = ComputeClass::kAuto;
  ThreadPool* pool = nullptr;  // borrowed for the time of loading
  std::string packed_cache;  // folder that keeps packed weights (load/packed_cache.h); empty: none
  // Nothing is read that is not needed to know the sizes: the model cannot compute.
  bool sizes_only = false;
};

// The shape of one layer's cache.
struct KvShape {
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t group = 0;       // of ModelInfo::kv_groups
  int32_t latent_dim = 0;  // of latent layers (kernels/attention.h): they keep no values; 0: others
};

// Layers whose caches keep the same positions, so that one block table goes for all of them.
struct KvGroup {
  int32_t window = 0;   // a query reads the last `window` positions, its own included; 0: all
  bool latent = false;  // of latent layers
};

// The states of one recurrent layer in memory: that of block b at data + b * stride, as the layer
// lays it out.
struct StateLayer {
  float* data = nullptr;
  int64_t stride = 0;  // in floats

  float* block(BlockId id) const { return data + id * stride; }
};

struct ModelInfo {
  std::string architecture;
  int32_t vocab_size = 0;
  int32_t d_model = 0;
  int32_t max_context = 0;
  std::vector<KvShape>
      kv_layers;  // layers that keep keys and values, in the order of Forward's `kv`
  std::vector<KvGroup> kv_groups = {{}};  // each has a layer at least
  // The floats of a state of each recurrent layer. If there are any, their states make up one more
  // cache group, after kv_groups.
  std::vector<int64_t> state_layers;
  int64_t weight_bytes = 0;       // packed
  int64_t multiply_adds = 0;      // of one token's products with weights, the head's included
  uint64_t weights_hash = 0;      // over the checkpoint's tensors
  bool integer_products = false;  // some product is of the int8-dot class
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;

  // Makes the buffers of a step. Called once, before Forward.
  virtual Status Prepare(const BatchLimits& limits, Compute* compute) = 0;
  virtual int64_t activation_bytes() const = 0;

  // Where the states are, one a layer of info().state_layers. Called once, before Forward.
  virtual void UseStates(std::span<const StateLayer>) {}

  // Runs the batch through all layers, appending to the caches kv[i] of info().kv_layers[i].
  virtual void Forward(const Batch& batch, std::span<const kernels::KvLayer> kv,
                       Compute* compute) = 0;

  // Logits of batch.logit_tokens[begin, begin + count) of the last Forward: row i at
  // logits + i * stride, stride >= PaddedOutputs(vocab_size). The padding holds nothing of use.
  virtual void Logits(const Batch& batch, int32_t begin, int32_t count, Compute* compute,
                      float* logits, int64_t stride) = 0;
};

// Loads `checkpoint`, whose architecture must be known. Errors name the file and the tensor or key.
Result<std::unique_ptr<Model>> LoadModel(std::shared_ptr<const Checkpoint> checkpoint,
                                         const LoadOptions& options);

}  // namespace lockstep
