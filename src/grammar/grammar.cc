#include "grammar/grammar.h"

#include <new>
#include <string_view>

#include "base/out_of_memory.h"
#include "grammar/spec_json.h"
#include "text/rust_call.h"
//
#include "lockstep_text/bridge.h"

namespace lockstep {
namespace {

constexpr size_t kMaxCached = 64;

}  // namespace

struct TokenMatcher::Rep {
  rust::Box<rust_text::GrammarMatcher> matcher;
};

struct Grammar::Rep {
  rust::Box<rust_text::CompiledGrammar> compiled;
};

struct GrammarCompiler::Factory {
  rust::Box<rust_text::GrammarFactory> factory;
};

TokenMatcher::TokenMatcher(std::unique_ptr<Rep> rep, size_t mask_words)
    : rep_(std::move(rep)), mask_(mask_words) {}
TokenMatcher::~TokenMatcher() = default;

void TokenMatcher::FillMask() noexcept {
  if (complete_) return;
  try {
    mask_status_ = CallRust([&] {
                     rust_text::grammar_mask(*rep_->matcher, {mask_.data(), mask_.size()});
                     return true;
                   }).status();
  } catch (const std::bad_alloc&) {
    mask_lost_ = true;
  }
}

Status TokenMatcher::Accept(TokenId token) {
  if (mask_lost_) return OutOfMemory();
  LOCKSTEP_RETURN_IF_ERROR(mask_status_);
  const auto done = CallRust(
      [&] { return rust_text::grammar_accept(*rep_->matcher, static_cast<uint32_t>(token)); });
  if (!done.ok()) return done.status();
  complete_ = *done;
  return OkStatus();
}

Grammar::Grammar(std::unique_ptr<Rep> rep, size_t mask_words)
    : rep_(std::move(rep)), mask_words_(mask_words) {}
Grammar::~Grammar() = default;

Result<std::unique_ptr<TokenMatcher>> Grammar::Start() const {
  auto started = CallRust([&] { return rust_text::grammar_start(*rep_->compiled); });
  if (!started.ok()) return started.status();
  auto rep = std::make_unique<TokenMatcher::Rep>(TokenMatcher::Rep{std::move(started).value()});
  std::unique_ptr<TokenMatcher> matcher(new TokenMatcher(std::move(rep), mask_words_));
  matcher->FillMask();
  LOCKSTEP_RETURN_IF_ERROR(matcher->mask_status_);
  return matcher;
}

GrammarCompiler::GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, int32_t vocab_size,
                                 std::vector<TokenId> eos_ids)
    : tokenizer_(std::move(tokenizer)), vocab_size_(vocab_size), eos_ids_(std::move(eos_ids)) {}
GrammarCompiler::~GrammarCompiler() = default;

Result<const GrammarCompiler::Factory*> GrammarCompiler::ReadyFactory() {
  const std::lock_guard lock(factory_mutex_);
  if (factory_ != nullptr) return factory_.get();
  std::string bytes;
  std::vector<uint32_t> ends;
  std::vector<uint8_t> special;
  for (TokenId id = 0; id < vocab_size_; ++id) {
    special.push_back(tokenizer_->IsSpecial(id) ? 1 : 0);
    bytes += special.back() != 0 ? tokenizer_->TokenText(id) : tokenizer_->TokenBytes(id);
    ends.push_back(static_cast<uint32_t>(bytes.size()));
  }
  const std::vector<uint32_t> eos(eos_ids_.begin(), eos_ids_.end());
  auto made = CallRust([&] {
    const rust_text::Strings tokens{RustBytes(bytes), RustSlice<uint32_t>(ends)};
    return rust_text::grammar_factory(tokens, RustSlice<uint8_t>(special),
                                      RustSlice<uint32_t>(eos));
  });
  if (!made.ok()) return made.status();
  factory_ = std::make_unique<const Factory>(Factory{std::move(made).value()});
  return factory_.get();
}

Result<std::shared_ptr<const Grammar>> GrammarCompiler::Compile(const GrammarSpec& spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Factory* factory, ReadyFactory());
  std::string key = SpecJson(spec);
  {
    const std::lock_guard lock(cache_mutex_);
    if (const auto found = index_.find(key); found != index_.end()) {
      cache_.splice(cache_.begin(), cache_, found->second);
      return cache_.front().second;
    }
  }
  auto compiled =
      CallRust([&] { return rust_text::grammar_compile(*factory->factory, RustBytes(key)); });
  if (!compiled.ok()) return compiled.status();
  auto rep = std::make_unique<Grammar::Rep>(Grammar::Rep{std::move(compiled).value()});
  const std::shared_ptr<const Grammar> grammar(
      new Grammar(std::move(rep), (static_cast<size_t>(vocab_size_) + 31) / 32));
  const std::lock_guard lock(cache_mutex_);
  if (index_.contains(key)) return grammar;  // somebody else was as quick
  cache_.emplace_front(std::move(key), grammar);
  index_.emplace(cache_.front().first, cache_.begin());
  if (cache_.size() > kMaxCached) {
    index_.erase(cache_.back().first);
    cache_.pop_back();
  }
  return grammar;
}

}  // namespace lockstep
