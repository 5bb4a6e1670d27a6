// One step of the engine as data: which spans of which sequences the executor computes, and what it
// hands back. The executor sees no requests, no text and no scheduling; a row's result depends on
// the fields of that row alone.
//
// The input only borrows: every span stays valid and unchanged until Executor::Step returns.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "core/sampling_params.h"
#include "core/types.h"

namespace lockstep {

// A contiguous span of one sequence's tokens that are not computed yet: 1 when decoding, n for a
// prompt chunk. No two rows of a step belong to one sequence.
struct StepRow {
  std::span<const TokenId> sequence;  // every token known so far, prompt and output
  int32_t begin = 0;                  // first position to compute
  int32_t count = 0;                  // >= 1; begin + count <= sequence.size()
  int32_t prompt_tokens = 0;          // sequence[0, prompt_tokens) is the prompt

  // Block tables, one a cache group in the order of ExecutorInfo::cache_groups; CacheKind says what
  // an entry is. Those that hold positions cover [0, begin + count). A block whose positions all
  // come before `begin` may stand in several rows' tables and is never written.
  std::span<const std::span<const BlockId>> block_tables;

  // Non-null: sample the token that follows position begin + count - 1 (which is then the last
  // known).
  const SamplingParams* sampling = nullptr;
  // Ids that may not be drawn at this position (minimum length); ascending.
  std::span<const TokenId> banned;
  // Non-empty: bit t says whether token t may be drawn; (vocab + 31) / 32 words. What it points at
  // may be in the making until StepInput::await_masks has returned.
  std::span<const uint32_t> mask;

  // >= 0: also return log-probabilities of the known tokens that follow each computed position,
  // with this many of the best (echo, score).
  int32_t prompt_logprobs = -1;
};

struct StepInput {
  std::vector<StepRow> rows;
  // Non-null: to be called before a row's mask is read, as late as may be.
  std::function<void()> await_masks;
};

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0.0f;
};

// The distribution after one position: raw log-softmax of the logits in f32.
struct PositionLogprobs {
  TokenId token = -1;             // the token chosen or given there; -1 when none is known
  float logprob = 0.0f;           // its log-probability; 0 when token is -1
  std::vector<TokenLogprob> top;  // best first; ties by the smaller id
};

struct RowOutput {
  Status status;                         // a failure concerns this row alone
  TokenId token = -1;                    // the sampled token, when sampling was asked
  PositionLogprobs logprobs;             // for the sampled token, when sampling->logprobs >= 0
  std::vector<PositionLogprobs> prompt;  // one a computed position, when prompt_logprobs >= 0
};

struct StepOutput {
  std::vector<RowOutput> rows;  // parallel to StepInput::rows
};

}  // namespace lockstep
