// Tokenizer: text to token ids and back, for a Hugging Face tokenizer.json or the vocabulary of a
// GGUF file. It is not a chat template, and it does not know the model: which ids end a sequence is
// the union of what eos_ids() says and what the model's own configuration says.
//
// Immutable and thread-safe; held by shared_ptr<const Tokenizer>.
//
// Text is UTF-8. Every token stands for a fixed string of bytes (TokenBytes); the decoded text of
// ids is the concatenation of their bytes, less one leading space where the file's decoder strips
// it, with each maximal ill-formed part replaced by U+FFFD (Unicode 15, section 3.9, "U+FFFD
// Substitution of Maximal Subparts"). Where a file lists one token text twice, the lowest id wins.
//
// Sources: the tokenizer.json of the `tokenizers` library; the GGUF specification, "Tokenizer".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/types.h"
#include "text/gguf_vocabulary.h"

namespace lockstep {

struct EncodeOptions {
  // Adds what the file says a sequence starts and ends with (BOS, sometimes EOS). A BOS that the
  // text already begins with (parse_special) is not added again.
  bool add_special = true;
  // Special tokens written out in the text become those tokens; otherwise they are plain text.
  bool parse_special = true;
};

struct DecodeOptions {
  bool skip_special = true;   // leave control tokens out
  bool continuation = false;  // the ids go on after other text: strip no leading space
};

class Tokenizer {
 public:
  // A folder with tokenizer.json, and optionally tokenizer_config.json, special_tokens_map.json and
  // generation_config.json.
  // Errors: kNotFound and kIoError name the file; kDataLoss and kUnimplemented name file and key.
  static Result<std::shared_ptr<const Tokenizer>> FromHfFolder(const std::string& path);

  // `json` is the content of a tokenizer.json. Without a tokenizer_config.json, BOS and EOS are
  // unknown unless the post-processor of the file names them.
  static Result<std::shared_ptr<const Tokenizer>> FromTokenizerJson(std::string_view json);

  // Errors: kUnimplemented naming tokenizer.ggml.model or tokenizer.ggml.pre; kDataLoss naming the
  // key at fault.
  static Result<std::shared_ptr<const Tokenizer>> FromGguf(const GgufVocabulary& vocabulary);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Errors: kInvalidArgument when `text` is not valid UTF-8 or holds what the tokenizer cannot
  // take.
  Result<std::vector<TokenId>> Encode(std::string_view text, EncodeOptions options = {}) const;

  // `text` has no fewer tokens: refuses an over-long prompt without encoding it. Bytes that have no
  // token do not count. 0 when the vocabulary's steps allow no such statement (shrink.h).
  size_t FewestTokens(std::string_view text) const;

  // Valid UTF-8. Ids outside the vocabulary stand for no bytes.
  std::string Decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  // One more than the largest id.
  size_t vocab_size() const;

  // The bytes that the token adds to the output, not always valid UTF-8; empty outside the
  // vocabulary. Valid while the tokenizer lives.
  std::string_view TokenBytes(TokenId id) const;

  // The token as the file writes it, for display.
  std::string_view TokenText(TokenId id) const;

  // A control token, which is never shown.
  bool IsSpecial(TokenId id) const;

  // The token whose text in the file is `text`.
  std::optional<TokenId> FindToken(std::string_view text) const;

  std::optional<TokenId> bos_id() const;
  // Ids that end a sequence or a turn according to the tokenizer's files, ascending.
  const std::vector<TokenId>& eos_ids() const;
  std::optional<TokenId> eos_id() const;  // the file's own EOS, first among eos_ids' sources
  bool adds_bos() const;                  // Encode with add_special begins with BOS

  // True when decoding from the start of a text strips one leading space.
  bool strips_leading_space() const;

  // The chat template of the HF folder (tokenizer_config.json or chat_template.jinja), if any, and
  // the texts of BOS and EOS for it.
  const std::optional<std::string>& chat_template() const;
  std::string_view bos_text() const;
  std::string_view eos_text() const;

 private:
  struct Rep;
  explicit Tokenizer(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace lockstep
