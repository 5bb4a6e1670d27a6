// How attend() and attend_split() lay out their scratch: one batch of query rows, the scores of one
// split, and one block widened to f32. Offsets in floats; every part starts on 64 bytes.
//
// A row is one (token, head) pair; rows are ordered by token, then head.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace lockstep::kernels {

inline constexpr int32_t kTileRows = 6;  // rows that share the loads of one register tile
inline constexpr int32_t kBatchRows =
    48;  // rows that share a widened block; a multiple of kTileRows
inline constexpr int32_t kScoreStride = kSplit + 16;  // not a power of two: rows fall on other sets

struct AttentionScratch {
  int64_t padded_dim;  // head_dim rounded up to whole vectors
  int64_t queries;     // scaled, a tile of R rows as [head_dim][R]
  int64_t scores;      // [kBatchRows][kScoreStride]
  int64_t split_out;   // [kBatchRows][padded_dim], o of the split
  int64_t out;         // [kBatchRows][padded_dim], o of all splits so far
  int64_t block;       // [kBlockTokens][padded_dim] f32, keys or values
  int64_t floats;      // in total
};

constexpr AttentionScratch LayOutScratch(int32_t head_dim) {
  AttentionScratch s{};
  s.padded_dim = (head_dim + 15) / 16 * 16;
  s.scores = kBatchRows * s.padded_dim;
  s.split_out = s.scores + kBatchRows * kScoreStride;
  s.out = s.split_out + kBatchRows * s.padded_dim;
  s.block = s.out + kBatchRows * s.padded_dim;
  s.floats = s.block + kBlockTokens * s.padded_dim;
  return s;
}

}  // namespace lockstep::kernels
