// What an answer must look like (a JSON schema, a regular expression, a grammar, calls of tools),
// compiled for a model's vocabulary, and which tokens may come next in each answer. Not: reading it
// from a request (api/), nor choosing a token (sampling/).
//
// What may come next depends on the grammar and on the answer's own tokens alone.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/types.h"
#include "text/tokenizer.h"

namespace lockstep {

struct GrammarSpec {
  enum class Kind {
    kJsonSchema,  // text is the schema
    kRegex,       // text is the expression, in the syntax of Rust's regex crate, matched whole
    kChoice,      // text is a JSON list of strings
    kLark,        // text is a grammar in llguidance's dialect of Lark
    kGbnf,        // text is a grammar as llama.cpp writes them
    kCalls,       // the calls below
  };
  // Fixed text around JSON of a schema.
  struct Call {
    std::string before;
    std::string schema;
    std::string after;
  };

  Kind kind = Kind::kJsonSchema;
  std::string text;

  // open, call, (separator, call)*, close; of a kind other than kCalls: instead of its answer.
  std::vector<Call> calls;  // any of them
  bool many = false;        // more than one call
  std::string open;
  std::string separator;
  std::string close;

  // The reasoning before the answer, which is free: from think_begin (the prompt may have opened it
  // already, otherwise it may be left out) to think_end. Empty: there is none.
  std::string think_begin;
  std::string think_end;
  bool think_opened = false;

  // Parts of all these fixed texts that are control tokens in this vocabulary.
  std::vector<std::pair<std::string, TokenId>> controls;
};

// The place of one answer in its grammar. Not thread-safe.
class TokenMatcher {
 public:
  ~TokenMatcher();
  TokenMatcher(const TokenMatcher&) = delete;
  TokenMatcher& operator=(const TokenMatcher&) = delete;

  // Bit t: token t may come next; (vocab_size + 31) / 32 words. REQUIRES: not complete, and
  // FillMask has returned since the last Accept.
  std::span<const uint32_t> mask() const { return mask_; }
  // The answer has all that the grammar asks for: nothing may follow.
  bool complete() const { return complete_; }

  // Takes the next token. Errors: kInternal when the token is not allowed, or the grammar has
  // become too ambiguous to follow (which FillMask found out); the answer cannot go on.
  Status Accept(TokenId token);

  // Makes mask() that of the next token, if one may come. Takes tens of microseconds, now and then
  // a thousand. A failure is told by the next Accept.
  void FillMask() noexcept;

 private:
  friend class Grammar;
  struct Rep;
  explicit TokenMatcher(std::unique_ptr<Rep> rep, size_t mask_words);

  std::unique_ptr<Rep> rep_;
  std::vector<uint32_t> mask_;
  Status mask_status_;
  bool mask_lost_ = false;  // there was no memory, not even for a status
  bool complete_ = false;
};

// A compiled grammar. Immutable, thread-safe.
class Grammar {
 public:
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  // A matcher at the beginning of an answer.
  Result<std::unique_ptr<TokenMatcher>> Start() const;

 private:
  friend class GrammarCompiler;
  struct Rep;
  Grammar(std::unique_ptr<Rep> rep, size_t mask_words);

  std::unique_ptr<Rep> rep_;
  size_t mask_words_;
};

// Compiles grammars for one model and keeps the latest. Thread-safe.
class GrammarCompiler {
 public:
  // `vocab_size` is the model's, which may be larger than the tokenizer's; `eos_ids` end an answer.
  GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, int32_t vocab_size,
                  std::vector<TokenId> eos_ids);
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // Takes milliseconds; the first call prepares the vocabulary, up to a second. Errors:
  // kInvalidArgument for whatever is malformed or cannot be enforced in full, with the place in the
  // source as param ("properties.a.pattern", "[1].not" in the second call's schema) or none.
  Result<std::shared_ptr<const Grammar>> Compile(const GrammarSpec& spec);

 private:
  struct Factory;
  Result<const Factory*> ReadyFactory();

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const int32_t vocab_size_;
  const std::vector<TokenId> eos_ids_;

  std::mutex factory_mutex_;
  std::unique_ptr<const Factory> factory_;

  // The latest grammars by what they were made from, the newest first.
  using Entry = std::pair<std::string, std::shared_ptr<const Grammar>>;
  std::mutex cache_mutex_;
  std::list<Entry> cache_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
};

}  // namespace lockstep
