// WeightLoader: takes a checkpoint's tensors apart into what layers compute with: packed matrices,
// f32 vectors, the embedding. Checks every shape, and in the end that no tensor was left over: a
// weight that the forward pass ignores would change the model's answers without a sign.
//
// Matrices come packed from the packed cache where there is one, else they are packed here and
// kept in it for the next time.
//
// Not thread-safe; one loading at a time. Errors name the file and the tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "core/types.h"
#include "model/layers/linear.h"
#include "model/load/load_progress.h"
#include "model/load/matrix_packer.h"
#include "model/load/matrix_storage.h"
#include "model/load/packed_cache.h"
#include "model/model.h"
#include "platform/buffer.h"

namespace lockstep {

class Embedding;

class WeightLoader {
 public:
  static Result<WeightLoader> Create(std::shared_ptr<const Checkpoint> checkpoint,
                                     const LoadOptions& options);

  // `rows`, when not empty: row n of the result is row rows[n] of the tensor (and of the bias).
  // `bias`: the bias tensor's name, used when the checkpoint has it; an error when `needs_bias` and
  // absent.
  struct LinearOptions {
    std::string bias;
    bool needs_bias = false;
    std::vector<int32_t> rows;
    int32_t stack = 0;  // the tensor is [stack, n / stack, k]
    bool f32 = false;   // products in f32 whatever the class
  };
  Result<Linear> LoadLinear(const std::string& name, int32_t n, int32_t k,
                            const LinearOptions& options);
  // The matrices [n, k] of a tensor [count, n, k].
  Result<std::vector<Linear>> LoadStack(const std::string& name, int32_t count, int32_t n,
                                        int32_t k);
  // The tensor is [count * (n + rest), k]: of each n + rest rows the first n are turned, into
  // matrices [k, n], and the others stay, as matrices [rest, k]. What was quantised is expanded to
  // f32 where it is turned, since its groups then run the other way.
  struct Turned {
    std::vector<Linear> turned;  // [count]
    std::vector<Linear> rest;    // [count]
  };
  Result<Turned> LoadTurned(const std::string& name, int32_t count, int32_t n, int32_t rest,
                            int32_t k);
  Result<std::vector<float>> LoadVector(const std::string& name, int32_t n);
  // A small matrix [n, k] as it is, row-major; with `stack`, the tensor is [stack, n / stack, k].
  Result<std::vector<float>> LoadTable(const std::string& name, int32_t n, int32_t k,
                                       int32_t stack);
  Result<Embedding> LoadEmbedding(const std::string& name, int32_t vocab_size, int32_t d_model);

  // A tensor that the model needs not load (a table it computes itself).
  void Ignore(std::string_view name) { ignored_.insert(std::string(name)); }
  // All tensors whose names begin so: of a part of the checkpoint that is not this model's.
  void IgnoreAll(std::string_view prefix) { ignored_prefixes_.emplace_back(prefix); }
  bool Has(std::string_view name) const { return checkpoint_->Find(name) != nullptr; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }

  // Ends the loading. An error names the first tensor that nothing used.
  Status Finish();

  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t multiply_adds() const { return multiply_adds_; }  // of a row by every matrix
  bool integer_products() const { return integer_products_; }
  uint64_t hash() const { return hash_; }            // over what was loaded, in order; after Finish
  bool mapped() const { return cache_ != nullptr; }  // a packed cache was found

 private:
  WeightLoader(std::shared_ptr<const Checkpoint> checkpoint, const LoadOptions& options);

  bool f32() const { return options_.compute_class == ComputeClass::kF32; }
  PackContext context() {
    return {checkpoint_.get(), options_.pool, memory_.get(), &progress_, options_.sizes_only};
  }
  void OpenCache();
  // The matrix from the cache; null when it is not there.
  const kernels::PackedMatrix* FindPacked(const std::string& key, const StoredMatrix& stored,
                                          bool f32) const;
  Result<kernels::PackedMatrix> Pack(const std::string& key, const StoredMatrix& stored, bool f32);
  // `stored` under `name`, without a bias: from the cache, or packed.
  Result<Linear> Take(const std::string& name, const StoredMatrix& stored, bool f32);
  // The `count` parts of `whole`, one after the other, of n rows each.
  static std::vector<Linear> Split(const Linear& whole, int32_t count, int32_t n);
  // All parts are packed as one matrix, so each has to begin with a panel.
  Status CheckStackRows(const std::string& name, int32_t n) const;
  // Gives up the cache that is being written, saying so.
  void LoseCache(const Status& status);
  // The tensor's hash, where it is known by now.
  std::optional<uint64_t>& Use(const TensorView& tensor);

  struct Used {
    const TensorView* tensor;
    std::optional<uint64_t> hash;
  };

  std::shared_ptr<const Checkpoint> checkpoint_;
  LoadOptions options_;
  LoadProgress progress_;
  std::unique_ptr<MatrixStorage> storage_;
  // One for all matrices: those of a small model are smaller than a huge page.
  std::shared_ptr<Arena> memory_ = std::make_shared<Arena>();
  std::shared_ptr<const PackedCache> cache_;   // null: none was found
  std::unique_ptr<PackedCacheWriter> writer_;  // null: none is to be written
  bool IsIgnored(const std::string& name) const;

  std::unordered_set<std::string> ignored_;
  std::vector<std::string> ignored_prefixes_;
  std::vector<Used> used_;  // in the order of first use
  std::unordered_map<const TensorView*, size_t> used_index_;
  int64_t packed_bytes_ = 0;
  int64_t multiply_adds_ = 0;
  uint64_t hash_ = 0;
  bool integer_products_ = false;
};

}  // namespace lockstep
