#include "api/logprobs.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace lockstep {
namespace {

// JSON has no infinity; this is what OpenAI sends for a token that is all but impossible.
constexpr double kLeastLogprob = -9999.0;

double Shown(float logprob) {
  return logprob >= kLeastLogprob ? static_cast<double>(logprob) : kLeastLogprob;
}

std::string ToText(std::string_view bytes) {
  std::string text;
  Utf8Decoder decoder;
  decoder.Push(bytes, &text);
  decoder.Finish(&text);
  return text;
}

Json ByteList(std::string_view bytes) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<uint8_t>(byte));
  return list;
}

Json Entry(std::string_view bytes, float logprob) {
  Json entry;
  entry["token"] = ToText(bytes);
  entry["logprob"] = Shown(logprob);
  entry["bytes"] = ByteList(bytes);
  return entry;
}

int64_t Characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; });
}

}  // namespace

Json ChatLogprob(const ShownToken& token, int32_t top, const Tokenizer& tokenizer) {
  Json entry = Entry(token.bytes, token.logprobs.logprob);
  Json best = Json::array();
  for (const TokenLogprob& candidate : token.logprobs.top) {
    if (best.size() >= static_cast<size_t>(top)) break;
    best.push_back(Entry(tokenizer.TokenBytes(candidate.id), candidate.logprob));
  }
  entry["top_logprobs"] = std::move(best);
  return entry;
}

void LegacyLogprobs::AddText(std::string_view text) {
  tokens_.push_back(text);
  text_offset_.push_back(offset_);
  offset_ += Characters(text);
}

void LegacyLogprobs::Add(const ShownToken& token, const Tokenizer& tokenizer) {
  AddText(token.text);
  token_logprobs_.push_back(Shown(token.logprobs.logprob));
  // The chosen token is always among them. Two tokens of one text cannot both be keys: the likelier
  // stays.
  Json best = Json::object();
  int32_t left = top_;
  for (const TokenLogprob& candidate : token.logprobs.top) {
    if (left-- == 0) break;
    const bool chosen = candidate.id == token.logprobs.token;
    best.emplace(chosen ? token.text : ToText(tokenizer.TokenBytes(candidate.id)),
                 Shown(candidate.logprob));
  }
  best.emplace(token.text, Shown(token.logprobs.logprob));
  top_logprobs_.push_back(std::move(best));
}

void LegacyLogprobs::AddUnpredicted(std::string_view text) {
  AddText(text);
  token_logprobs_.push_back(nullptr);
  top_logprobs_.push_back(nullptr);
}

Json LegacyLogprobs::Take() {
  Json arrays;
  arrays["tokens"] = std::exchange(tokens_, Json::array());
  arrays["token_logprobs"] = std::exchange(token_logprobs_, Json::array());
  arrays["top_logprobs"] = std::exchange(top_logprobs_, Json::array());
  arrays["text_offset"] = std::exchange(text_offset_, Json::array());
  return arrays;
}

}  // namespace lockstep
