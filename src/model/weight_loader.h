// WeightLoader: takes a checkpoint's tensors apart into what layers compute with: packed matrices,
// f32 vectors, the embedding. Checks every shape, and in the end that no tensor was left over: a
// weight that the forward pass ignores would change the model's answers without a sign.
//
// Not thread-safe; one loading at a time. Errors name the file and the tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "core/types.h"
#include "model/layers/linear.h"
#include "model/model.h"
#include "platform/buffer.h"

namespace lockstep {

class Embedding;

class WeightLoader {
 public:
  WeightLoader(std::shared_ptr<const Checkpoint> checkpoint, ComputeClass compute_class,
               ThreadPool* pool)
      : checkpoint_(std::move(checkpoint)), compute_class_(compute_class), pool_(*pool) {}

  // `rows`, when not empty: row n of the result is row rows[n] of the tensor (and of the bias).
  // `bias`: the bias tensor's name, used when the checkpoint has it; an error when `needs_bias` and
  // absent.
  struct LinearOptions {
    std::string bias;
    bool needs_bias = false;
    std::vector<int32_t> rows;
  };
  Result<Linear> LoadLinear(const std::string& name, int32_t n, int32_t k,
                            const LinearOptions& options);
  Result<std::vector<float>> LoadVector(const std::string& name, int32_t n);
  Result<Embedding> LoadEmbedding(const std::string& name, int32_t vocab_size, int32_t d_model);

  // A tensor that the model needs not load (a table it computes itself).
  void Ignore(std::string_view name) { used_.insert(std::string(name)); }
  bool Has(std::string_view name) const { return checkpoint_->Find(name) != nullptr; }

  // An error naming the first tensor that nothing used.
  Status CheckAllUsed() const;

  int64_t packed_bytes() const { return packed_bytes_; }
  uint64_t hash() const { return hash_; }  // over what was loaded, in order
  bool integer_products() const { return integer_products_; }

 private:
  // The tensor, after checking its shape; marks it used and mixes its bytes into the hash.
  Result<const TensorView*> Take(const std::string& name, std::vector<int64_t> shape);

  std::shared_ptr<const Checkpoint> checkpoint_;
  ComputeClass compute_class_;
  ThreadPool& pool_;
  // One for all matrices: those of a small model are smaller than a huge page.
  std::shared_ptr<Arena> memory_ = std::make_shared<Arena>();
  std::unordered_set<std::string> used_;
  int64_t packed_bytes_ = 0;
  uint64_t hash_ = 0;
  bool integer_products_ = false;
};

}  // namespace lockstep
