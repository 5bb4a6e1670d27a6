// Embedding: rows of the token table, expanded to f32 straight from the checkpoint's bytes and, in
// some architectures, scaled.
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/types.h"
#include "model/compute.h"
#include "quant/packed_weights.h"
#include "weights/checkpoint.h"

namespace lockstep {

class Embedding {
 public:
  Embedding() = default;
  Embedding(std::shared_ptr<const Checkpoint> checkpoint, quant::Source table)
      : checkpoint_(std::move(checkpoint)), table_(table) {}

  // Makes Lookup multiply by `factor`. Before the first Lookup.
  void ScaleBy(float factor) { factor_ = factor; }

  // Row i of `out`, at out + i * stride, becomes the embedding of tokens[i].
  // REQUIRES: every id within the table.
  void Lookup(std::span<const TokenId> tokens, Compute* compute, float* out, int64_t stride) const;

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;  // keeps the mapping that table_ points into
  quant::Source table_;                           // [vocab, d_model]
  float factor_ = 1.0f;
};

}  // namespace lockstep
