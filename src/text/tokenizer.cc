#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "text/detokenizer.h"
#include "text/hf_folder.h"
#include "text/rust_call.h"
#include "text/shrink.h"
//
#include "lockstep_text/bridge.h"

namespace lockstep {
namespace {

constexpr uint8_t kSpecialFlag = 1;
constexpr uint8_t kPresentFlag = 2;

// Control tokens that end a turn, for GGUF files that name only one of several.
constexpr std::array<std::string_view, 9> kEndOfTurnTexts = {
    "<|eot_id|>", "<|im_end|>", "<|end|>",       "<end_of_turn>",  "<turn|>",
    "<|eom_id|>", "<EOT>",      "<|endoftext|>", "<|end_of_text|>"};

// Strings laid end to end, string i ending at ends[i].
struct FlatStrings {
  std::string bytes;
  std::vector<uint32_t> ends;

  FlatStrings() = default;
  explicit FlatStrings(const std::vector<std::string>& strings) {
    for (const std::string& s : strings) {
      bytes += s;
      ends.push_back(static_cast<uint32_t>(bytes.size()));
    }
  }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(bytes).substr(begin, ends[i] - begin);
  }
  rust_text::Strings ForRust() const { return {RustBytes(bytes), RustSlice<uint32_t>(ends)}; }
};

FlatStrings FromRust(const rust::Vec<uint8_t>& bytes, const rust::Vec<uint32_t>& ends) {
  FlatStrings result;
  result.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  result.ends.assign(ends.begin(), ends.end());
  return result;
}

int8_t FlagForRust(std::optional<bool> flag) { return flag ? static_cast<int8_t>(*flag) : -1; }

Status CheckGguf(const GgufVocabulary& vocabulary) {
  const size_t size = vocabulary.tokens.size();
  if (size == 0) return DataLoss("tokenizer.ggml.tokens: missing", "tokenizer.ggml.tokens");
  if (!vocabulary.token_types.empty() && vocabulary.token_types.size() != size) {
    return DataLoss("tokenizer.ggml.token_type: not one a token", "tokenizer.ggml.token_type");
  }
  if (!vocabulary.scores.empty() && vocabulary.scores.size() != size) {
    return DataLoss("tokenizer.ggml.scores: not one a token", "tokenizer.ggml.scores");
  }
  // Offsets are 32 bits wide.
  size_t bytes = 0;
  for (const std::string& token : vocabulary.tokens) bytes += token.size();
  for (const std::string& merge : vocabulary.merges) bytes += merge.size();
  if (bytes > UINT32_MAX / 2) return DataLoss("tokenizer.ggml: the vocabulary is too large");
  const std::pair<const char*, std::optional<TokenId>> ids[] = {
      {"tokenizer.ggml.bos_token_id", vocabulary.bos_id},
      {"tokenizer.ggml.eos_token_id", vocabulary.eos_id},
      {"tokenizer.ggml.eot_token_id", vocabulary.eot_id},
      {"tokenizer.ggml.eom_token_id", vocabulary.eom_id},
      {"tokenizer.ggml.unknown_token_id", vocabulary.unknown_id},
      {"tokenizer.ggml.padding_token_id", vocabulary.padding_id}};
  for (const auto& [key, id] : ids) {
    if (id && (*id < 0 || static_cast<size_t>(*id) >= size)) {
      return DataLoss(std::string(key) + ": outside the vocabulary", key);
    }
  }
  return OkStatus();
}

}  // namespace

struct Tokenizer::Rep {
  explicit Rep(rust::Box<rust_text::TextTokenizer> r) : rust(std::move(r)) {}

  rust::Box<rust_text::TextTokenizer> rust;
  FlatStrings texts;
  FlatStrings bytes;
  std::vector<uint8_t> flags;
  std::unordered_map<std::string_view, TokenId> ids;  // views into texts
  bool strips_leading_space = false;
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::vector<TokenId> eos_ids;
  bool library_adds_bos = false;  // the library's own add_special begins with bos
  bool adds_bos = false;
  std::optional<std::string> chat_template;
  size_t bytes_a_token = 0;         // that one may stand for; 0: unknown
  std::array<bool, 256> counted{};  // bytes that cannot get lost
  bool all_counted = false;

  Status LoadTable();
  void BoundTokens(std::optional<TextShrink> shrink);
  Status Probe();
  void AddEos(std::optional<TokenId> id);
};

Status Tokenizer::Rep::LoadTable() {
  auto table = CallRust([&] { return rust_text::tokenizer_table(*rust); });
  if (!table.ok()) return table.status();
  texts = FromRust(table->texts, table->text_ends);
  bytes = FromRust(table->bytes, table->byte_ends);
  flags.assign(table->flags.begin(), table->flags.end());
  strips_leading_space = table->strip_leading_space;
  ids.reserve(flags.size());
  for (size_t id = 0; id < flags.size(); ++id) {
    if ((flags[id] & kPresentFlag) != 0) ids.emplace(texts[id], static_cast<TokenId>(id));
  }
  return OkStatus();
}

// A token stands for the bytes it decodes to, or, where a mark written in the text is taken for a
// space, for its text in the file. A byte without a token of its own may get lost, and unless every
// byte reaches the vocabulary alone, others with it.
void Tokenizer::Rep::BoundTokens(std::optional<TextShrink> shrink) {
  size_t longest = 0;
  for (size_t id = 0; id < flags.size(); ++id) {
    if ((flags[id] & kPresentFlag) == 0) continue;
    longest = std::max({longest, bytes[id].size(), texts[id].size()});
    const bool plain = (flags[id] & kSpecialFlag) == 0;
    if (plain && bytes[id].size() == 1) counted[static_cast<uint8_t>(bytes[id].front())] = true;
  }
  all_counted = std::all_of(counted.begin(), counted.end(), [](bool c) { return c; });
  if (shrink && (all_counted || shrink->bytes_alone)) bytes_a_token = longest * shrink->factor;
}

// What add_special puts before an empty text tells whether BOS is added, and which token it is.
Status Tokenizer::Rep::Probe() {
  auto begin = CallRust([&] { return rust_text::tokenizer_encode(*rust, {}, true, true); });
  // The library fails on names that the file uses and does not define.
  if (!begin.ok()) {
    return DataLoss("post_processor: " + begin.status().message(), "post_processor");
  }
  // What is put around every text; its ids are written out and may be any.
  for (const auto id : *begin) {
    if (static_cast<size_t>(id) < flags.size()) continue;
    return DataLoss("post_processor: id " + std::to_string(id) + " is not in the vocabulary",
                    "post_processor");
  }
  if (begin->empty()) return OkStatus();
  const TokenId first = begin->front();
  if (!bos && first != eos) bos = first;
  library_adds_bos = bos == first;
  adds_bos = library_adds_bos;
  return OkStatus();
}

void Tokenizer::Rep::AddEos(std::optional<TokenId> id) {
  if (id && static_cast<size_t>(*id) < flags.size()) eos_ids.push_back(*id);
  std::sort(eos_ids.begin(), eos_ids.end());
  eos_ids.erase(std::unique(eos_ids.begin(), eos_ids.end()), eos_ids.end());
}

Tokenizer::Tokenizer(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::FromTokenizerJson(std::string_view json) {
  auto rust = CallRust([&] { return rust_text::tokenizer_from_json(RustBytes(json)); });
  if (!rust.ok()) return rust.status();
  auto rep = std::make_unique<Rep>(std::move(rust).value());
  LOCKSTEP_RETURN_IF_ERROR(rep->LoadTable());
  rep->BoundTokens(ShrinkOf(json));
  LOCKSTEP_RETURN_IF_ERROR(rep->Probe());
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(rep)));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::FromHfFolder(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(HfFolder folder, ReadHfFolder(path));
  auto rust =
      CallRust([&] { return rust_text::tokenizer_from_json(RustBytes(folder.tokenizer_json)); });
  if (!rust.ok()) return rust.status().WithContext(path + "/tokenizer.json");
  auto rep = std::make_unique<Rep>(std::move(rust).value());
  LOCKSTEP_RETURN_IF_ERROR(rep->LoadTable());
  rep->BoundTokens(ShrinkOf(folder.tokenizer_json));
  const std::pair<const char*,
                  std::pair<const std::optional<std::string>*, std::optional<TokenId>*>>
      named[] = {{"bos_token", {&folder.bos_token, &rep->bos}},
                 {"eos_token", {&folder.eos_token, &rep->eos}}};
  for (const auto& [key, pair] : named) {
    if (!*pair.first) continue;
    const auto found = rep->ids.find(**pair.first);
    if (found == rep->ids.end()) {
      return DataLoss(path + ": " + key + " " + **pair.first + " is not in tokenizer.json", key);
    }
    *pair.second = found->second;
  }
  LOCKSTEP_RETURN_IF_ERROR(rep->Probe());
  if (folder.add_bos_token && rep->bos) rep->adds_bos = *folder.add_bos_token;
  rep->AddEos(rep->eos);
  for (const TokenId id : folder.eos_ids) rep->AddEos(id);
  rep->chat_template = std::move(folder.chat_template);
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(rep)));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::FromGguf(const GgufVocabulary& vocabulary) {
  LOCKSTEP_RETURN_IF_ERROR(CheckGguf(vocabulary));
  const FlatStrings tokens(vocabulary.tokens);
  const FlatStrings merges(vocabulary.merges);
  rust_text::GgufInput input{.model = RustBytes(vocabulary.model),
                             .pre = RustBytes(vocabulary.pre),
                             .tokens = tokens.ForRust(),
                             .types = RustSlice<int32_t>(vocabulary.token_types),
                             .scores = RustSlice<float>(vocabulary.scores),
                             .merges = merges.ForRust(),
                             .bos = vocabulary.bos_id.value_or(-1),
                             .eos = vocabulary.eos_id.value_or(-1),
                             .unknown = vocabulary.unknown_id.value_or(-1),
                             .add_bos = FlagForRust(vocabulary.add_bos),
                             .add_eos = FlagForRust(vocabulary.add_eos),
                             .add_space_prefix = FlagForRust(vocabulary.add_space_prefix)};
  auto rust = CallRust([&] { return rust_text::tokenizer_from_gguf(input); });
  if (!rust.ok()) return rust.status();
  auto rep = std::make_unique<Rep>(std::move(rust).value());
  rep->bos = vocabulary.bos_id;
  rep->eos = vocabulary.eos_id;
  LOCKSTEP_RETURN_IF_ERROR(rep->LoadTable());
  // None of these formats has a step that shortens a text.
  rep->BoundTokens(TextShrink{.factor = 1, .bytes_alone = vocabulary.model == "gpt2"});
  LOCKSTEP_RETURN_IF_ERROR(rep->Probe());
  for (const auto id : {vocabulary.eos_id, vocabulary.eot_id, vocabulary.eom_id}) rep->AddEos(id);
  // In the harmony format <|end|> ends a message, not the turn.
  const bool harmony = rep->ids.contains("<|return|>") && rep->ids.contains("<|call|>");
  for (const std::string_view text : kEndOfTurnTexts) {
    const auto found = rep->ids.find(text);
    if (found == rep->ids.end() || (harmony && text == "<|end|>")) continue;
    if ((rep->flags[static_cast<size_t>(found->second)] & kSpecialFlag) != 0) {
      rep->AddEos(found->second);
    }
  }
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(rep)));
}

Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  auto encoded = CallRust([&] {
    return rust_text::tokenizer_encode(*rep_->rust, RustBytes(text), options.add_special,
                                       options.parse_special);
  });
  if (!encoded.ok()) return encoded.status();
  std::vector<TokenId> ids(encoded->begin(), encoded->end());
  if (options.add_special && rep_->bos) {
    const TokenId bos = *rep_->bos;
    if (rep_->library_adds_bos && !rep_->adds_bos && !ids.empty()) ids.erase(ids.begin());
    const bool begins = !ids.empty() && ids.front() == bos;
    if (rep_->adds_bos && !rep_->library_adds_bos && !begins) ids.insert(ids.begin(), bos);
    // The text brought a BOS of its own.
    if (rep_->library_adds_bos && rep_->adds_bos && ids.size() > 1 && ids[1] == bos) {
      ids.erase(ids.begin());
    }
  }
  return ids;
}

std::string Tokenizer::Decode(std::span<const TokenId> ids, DecodeOptions options) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!options.skip_special || !IsSpecial(id)) bytes += TokenBytes(id);
  }
  std::string_view rest = bytes;
  if (!options.continuation && rep_->strips_leading_space && rest.starts_with(' ')) {
    rest.remove_prefix(1);
  }
  std::string text;
  Utf8Decoder utf8;
  utf8.Push(rest, &text);
  utf8.Finish(&text);
  return text;
}

size_t Tokenizer::FewestTokens(std::string_view text) const {
  const size_t each = rep_->bytes_a_token;
  if (each == 0) return 0;
  const auto counts = [&](char c) { return rep_->counted[static_cast<uint8_t>(c)]; };
  const size_t size =
      rep_->all_counted ? text.size() : std::count_if(text.begin(), text.end(), counts);
  return size / each + (size % each == 0 ? 0 : 1);
}

size_t Tokenizer::vocab_size() const { return rep_->flags.size(); }

std::string_view Tokenizer::TokenBytes(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= vocab_size()) return {};
  return rep_->bytes[static_cast<size_t>(id)];
}

std::string_view Tokenizer::TokenText(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= vocab_size()) return {};
  return rep_->texts[static_cast<size_t>(id)];
}

bool Tokenizer::IsSpecial(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= vocab_size()) return false;
  return (rep_->flags[static_cast<size_t>(id)] & kSpecialFlag) != 0;
}

std::optional<TokenId> Tokenizer::FindToken(std::string_view text) const {
  const auto found = rep_->ids.find(text);
  if (found == rep_->ids.end()) return std::nullopt;
  return found->second;
}

std::optional<TokenId> Tokenizer::bos_id() const { return rep_->bos; }
const std::vector<TokenId>& Tokenizer::eos_ids() const { return rep_->eos_ids; }
std::optional<TokenId> Tokenizer::eos_id() const { return rep_->eos; }
bool Tokenizer::adds_bos() const { return rep_->adds_bos; }
bool Tokenizer::strips_leading_space() const { return rep_->strips_leading_space; }
const std::optional<std::string>& Tokenizer::chat_template() const { return rep_->chat_template; }
std::string_view Tokenizer::bos_text() const { return rep_->bos ? TokenText(*rep_->bos) : ""; }
std::string_view Tokenizer::eos_text() const { return rep_->eos ? TokenText(*rep_->eos) : ""; }

}  // namespace lockstep
