// The tokens of a step as a model sees them: the spans of all rows laid end to end, without
// padding. Only cache append and attention look at where a row begins. Plain data, borrowed for the
// step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"

namespace lockstep {

struct BatchRow {
  int32_t first = 0;  // index of its first token among the step's tokens
  int32_t count = 0;
  int32_t begin = 0;                                       // absolute position of that token
  std::span<const std::span<const BlockId>> block_tables;  // one a cache group
};

struct Batch {
  std::vector<TokenId> tokens;     // [T]
  std::vector<int32_t> positions;  // [T]
  std::vector<BatchRow> rows;
  std::vector<int32_t> logit_tokens;  // indices of the tokens whose logits are wanted, ascending

  int32_t size() const { return static_cast<int32_t>(tokens.size()); }

  // body(t, row) for the tokens [first, last), each with its row.
  template <typename Body>
  void ForTokens(int32_t first, int32_t last, Body&& body) const {
    // The row of the first token; the following ones are found by walking on.
    size_t r = 0;
    while (rows[r].first + rows[r].count <= first) ++r;
    for (int32_t t = first; t < last; ++t) {
      if (rows[r].first + rows[r].count <= t) ++r;
      body(t, rows[r]);
    }
  }
};

// What a model's buffers are sized for.
struct BatchLimits {
  int32_t max_tokens = 0;
  int32_t max_rows = 0;
};

}  // namespace lockstep
