#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "targets.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace lockstep::fuzz {
namespace {

constexpr std::string_view kTexts[] = {"", "Hello el<|e|> lo", "  \u00e9 12 e\u0301\t<s>H\n",
                                       "\u6f22\U0001F999o\u00e9\u00e9ll"};

// What tokenizer.h and detokenizer.h promise of any tokenizer.
void Check(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text,
           EncodeOptions options) {
  const auto ids = tokenizer->Encode(text, options);
  if (!ids.ok()) {
    LOCKSTEP_CHECK(!ids.status().message().empty());
    return;
  }
  const auto size = static_cast<TokenId>(tokenizer->vocab_size());
  LOCKSTEP_CHECK(std::all_of(ids->begin(), ids->end(), [&](TokenId id) { return id < size; }));
  LOCKSTEP_CHECK(tokenizer->FewestTokens(text) <= ids->size());
  const std::string decoded = tokenizer->Decode(*ids);
  LOCKSTEP_CHECK(IsValidUtf8(decoded));
  Detokenizer detokenizer(tokenizer);
  std::string pieces;
  for (const TokenId id : *ids) pieces += detokenizer.Push(id);
  pieces += detokenizer.Finish();
  LOCKSTEP_CHECK(pieces == decoded);
}

}  // namespace

void TokenizerJson(const uint8_t* data, size_t size) {
  const auto tokenizer = Tokenizer::FromTokenizerJson({reinterpret_cast<const char*>(data), size});
  if (!tokenizer.ok()) {
    LOCKSTEP_CHECK(tokenizer.status().code() == StatusCode::kDataLoss ||
                   tokenizer.status().code() == StatusCode::kUnimplemented);
    LOCKSTEP_CHECK(!tokenizer.status().message().empty());
    return;
  }
  for (const std::string_view text : kTexts) {
    Check(*tokenizer, text, {});
    Check(*tokenizer, text, {.add_special = false, .parse_special = false});
  }
}

}  // namespace lockstep::fuzz
