// Small vocabularies for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "text/gguf_vocabulary.h"

namespace lockstep {

// SentencePiece-style: <unk> <s> </s>, the 256 byte tokens at 3, then pieces with scores.
inline GgufVocabulary SentencePieceVocabulary() {
  GgufVocabulary v;
  v.model = "llama";
  auto add = [&](std::string text, GgufTokenType type, float score) {
    v.tokens.push_back(std::move(text));
    v.token_types.push_back(static_cast<int32_t>(type));
    v.scores.push_back(score);
  };
  add("<unk>", GgufTokenType::kUnknown, 0);
  add("<s>", GgufTokenType::kControl, 0);
  add("</s>", GgufTokenType::kControl, 0);
  const char* digits = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b) {
    add(std::string("<0x") + digits[b / 16] + digits[b % 16] + ">", GgufTokenType::kByte, 0);
  }
  float score = -1;
  for (const char* piece : {"\u2581h", "\u2581he", "ll", "llo", "\u2581hello", "\u2581", "h", "e",
                            "l", "o", "a", "aa", "aaaa", "\u2581a"}) {
    add(piece, GgufTokenType::kNormal, score--);
  }
  v.bos_id = 1;
  v.eos_id = 2;
  v.unknown_id = 0;
  return v;
}

// Byte-level: one token a byte-level character of ASCII letters and the space, a few merges, and
// two control tokens.
inline GgufVocabulary ByteLevelVocabulary() {
  GgufVocabulary v;
  v.model = "gpt2";
  v.pre = "gpt-2";
  for (char c = '!'; c <= '~'; ++c) v.tokens.push_back(std::string(1, c));
  for (const char* text : {"\u0120", "\u010a", "\u00e6", "\u00bc", "\u00a2", "\u00a1"}) {
    v.tokens.push_back(text);
  }
  v.merges = {"h e", "l l", "he ll", "hell o", "\u0120 hello", "a a", "aa aa"};
  for (const char* text : {"he", "ll", "hell", "hello", "\u0120hello", "aa", "aaaa"}) {
    v.tokens.push_back(text);
  }
  v.token_types.assign(v.tokens.size(), static_cast<int32_t>(GgufTokenType::kNormal));
  for (const char* text : {"<|end|>", "<|start|>"}) {
    v.tokens.push_back(text);
    v.token_types.push_back(static_cast<int32_t>(GgufTokenType::kControl));
  }
  v.eos_id = static_cast<TokenId>(v.tokens.size() - 2);
  v.bos_id = static_cast<TokenId>(v.tokens.size() - 1);
  v.add_bos = false;
  return v;
}

}  // namespace lockstep
