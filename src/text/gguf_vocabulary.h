// GgufVocabulary: the tokenizer part of a GGUF file as plain data, keys under "tokenizer.ggml." as
// the GGUF specification names them. It is not the file: whoever reads GGUF fills it, so that this
// layer knows nothing of files. Plain struct, no invariants; Tokenizer::FromGguf checks it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/types.h"

namespace lockstep {

// Values of tokenizer.ggml.token_type.
enum class GgufTokenType : int32_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct GgufVocabulary {
  std::string model;                 // tokenizer.ggml.model: "gpt2", "llama", "gemma4"
  std::string pre;                   // tokenizer.ggml.pre; empty when the file has none
  std::vector<std::string> tokens;   // tokenizer.ggml.tokens; the index is the token id
  std::vector<int32_t> token_types;  // tokenizer.ggml.token_type; empty or one a token
  std::vector<float> scores;         // tokenizer.ggml.scores; empty or one a token
  std::vector<std::string> merges;   // tokenizer.ggml.merges: "left right", best first

  std::optional<TokenId> bos_id;  // tokenizer.ggml.bos_token_id, and so on
  std::optional<TokenId> eos_id;
  std::optional<TokenId> eot_id;
  std::optional<TokenId> eom_id;
  std::optional<TokenId> unknown_id;
  std::optional<TokenId> padding_id;

  // Unset: the default of the tokenizer's model and pre-tokeniser.
  std::optional<bool> add_bos;                   // tokenizer.ggml.add_bos_token
  std::optional<bool> add_eos;                   // tokenizer.ggml.add_eos_token
  std::optional<bool> add_space_prefix;          // tokenizer.ggml.add_space_prefix
  std::optional<bool> remove_extra_whitespaces;  // tokenizer.ggml.remove_extra_whitespaces
};

}  // namespace lockstep
