#include "text/shrink.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

using Element = simdjson::dom::element;

// Canonical composition and decomposition: three Hangul letters of three bytes become a syllable of
// three, and the Greek varia (three bytes) becomes a grave accent of one; nothing loses more.
constexpr size_t kCanonicalShrink = 3;

std::string_view TypeOf(Element value) {
  std::string_view type;
  return value["type"].get(type) == simdjson::SUCCESS ? type : std::string_view();
}

bool IsTrue(const simdjson::simdjson_result<Element>& value) {
  bool flag = false;
  return value.get(flag) == simdjson::SUCCESS && flag;
}

// The product of what the steps of `list` may do.
template <typename Step>
std::optional<size_t> InTurn(Element value, const char* list, Step step) {
  simdjson::dom::array steps;
  if (value[list].get(steps) != simdjson::SUCCESS) return std::nullopt;
  size_t factor = 1;
  for (const Element inner : steps) {
    const std::optional<size_t> of_step = step(inner);
    if (!of_step || factor > SIZE_MAX / *of_step) return std::nullopt;
    factor *= *of_step;
  }
  return factor;
}

std::optional<size_t> OfNormalizer(Element value) {
  if (value.is_null()) return 1;
  const std::string_view type = TypeOf(value);
  if (type == "Sequence") return InTurn(value, "normalizers", OfNormalizer);
  if (type == "Prepend") return 1;
  if (type == "NFC" || type == "NFD") return kCanonicalShrink;
  if (type != "Replace") return std::nullopt;
  std::string_view from;
  std::string_view to;
  if (value["pattern"]["String"].get(from) != simdjson::SUCCESS ||
      value["content"].get(to) != simdjson::SUCCESS || from.empty() || to.empty()) {
    return std::nullopt;
  }
  return std::max<size_t>((from.size() + to.size() - 1) / to.size(), 1);
}

std::optional<size_t> OfPreTokenizer(Element value) {
  if (value.is_null()) return 1;
  const std::string_view type = TypeOf(value);
  if (type == "Sequence") return InTurn(value, "pretokenizers", OfPreTokenizer);
  if (type == "ByteLevel" || type == "Metaspace" || type == "Digits") return 1;
  std::string_view behavior;
  const bool keeps = type == "Split" && value["behavior"].get(behavior) == simdjson::SUCCESS &&
                     behavior != "Removed";
  return keeps ? std::optional<size_t>(1) : std::nullopt;
}

bool HasByteLevel(Element value) {
  if (TypeOf(value) == "ByteLevel") return true;
  simdjson::dom::array steps;
  if (value["pretokenizers"].get(steps) != simdjson::SUCCESS) return false;
  return std::any_of(steps.begin(), steps.end(), HasByteLevel);
}

// An added token that takes the white space beside it may stand for any amount of it.
bool StripsSpace(Element root) {
  simdjson::dom::array added;
  if (root["added_tokens"].get(added) != simdjson::SUCCESS) return false;
  const auto strips = [](Element token) {
    return IsTrue(token["lstrip"]) || IsTrue(token["rstrip"]);
  };
  return std::any_of(added.begin(), added.end(), strips);
}

}  // namespace

std::optional<TextShrink> ShrinkOf(std::string_view json) {
  simdjson::dom::parser parser;
  Element root;
  if (json.empty() || parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const auto child = [root](const char* key, Element* out) {
    return root[key].get(*out) == simdjson::SUCCESS;
  };
  Element normalizer;
  Element pre_tokenizer;
  const bool has_normalizer = child("normalizer", &normalizer) && !normalizer.is_null();
  const std::optional<size_t> normal = has_normalizer ? OfNormalizer(normalizer) : 1;
  const bool has_pre = child("pre_tokenizer", &pre_tokenizer);
  const std::optional<size_t> pre = has_pre ? OfPreTokenizer(pre_tokenizer) : 1;
  const bool byte_level = has_pre && HasByteLevel(pre_tokenizer);
  // Otherwise one unknown token may stand for a whole run of characters.
  const bool knows_bytes = byte_level || IsTrue(root["model"]["byte_fallback"]);
  if (!normal || !pre || !knows_bytes || StripsSpace(root)) return std::nullopt;
  return TextShrink{.factor = *normal, .bytes_alone = byte_level && !has_normalizer};
}

}  // namespace lockstep
