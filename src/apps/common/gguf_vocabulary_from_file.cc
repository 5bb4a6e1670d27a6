#include "apps/common/gguf_vocabulary_from_file.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

std::string Key(std::string_view name) { return std::string(kPrefix).append(name); }

Status ReadStrings(const GgufMetadata& metadata, std::string_view name, bool required,
                   std::vector<std::string>* out) {
  const std::string key = Key(name);
  if (!required && !metadata.Has(key)) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto views, metadata.GetStringArray(key));
  out->assign(views.begin(), views.end());
  return OkStatus();
}

Status ReadId(const GgufMetadata& metadata, std::string_view name, std::optional<TokenId>* out) {
  const std::string key = Key(name);
  if (!metadata.Has(key)) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(*out, metadata.GetI32(key));
  return OkStatus();
}

Status ReadFlag(const GgufMetadata& metadata, std::string_view name, std::optional<bool>* out) {
  const std::string key = Key(name);
  if (!metadata.Has(key)) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(*out, metadata.GetBool(key));
  return OkStatus();
}

}  // namespace

Result<GgufVocabulary> GgufVocabularyFromMetadata(const GgufMetadata& metadata) {
  GgufVocabulary v;
  LOCKSTEP_ASSIGN_OR_RETURN(v.model, metadata.GetString(Key("model")));
  LOCKSTEP_ASSIGN_OR_RETURN(v.pre, metadata.GetStringOr(Key("pre"), ""));
  LOCKSTEP_RETURN_IF_ERROR(ReadStrings(metadata, "tokens", true, &v.tokens));
  LOCKSTEP_RETURN_IF_ERROR(ReadStrings(metadata, "merges", false, &v.merges));
  if (metadata.Has(Key("token_type"))) {
    LOCKSTEP_ASSIGN_OR_RETURN(v.token_types, metadata.GetI32Array(Key("token_type")));
  }
  if (metadata.Has(Key("scores"))) {
    LOCKSTEP_ASSIGN_OR_RETURN(v.scores, metadata.GetF32Array(Key("scores")));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadId(metadata, "bos_token_id", &v.bos_id));
  LOCKSTEP_RETURN_IF_ERROR(ReadId(metadata, "eos_token_id", &v.eos_id));
  LOCKSTEP_RETURN_IF_ERROR(ReadId(metadata, "eot_token_id", &v.eot_id));
  LOCKSTEP_RETURN_IF_ERROR(ReadId(metadata, "eom_token_id", &v.eom_id));
  LOCKSTEP_RETURN_IF_ERROR(ReadId(metadata, "unknown_token_id", &v.unknown_id));
  LOCKSTEP_RETURN_IF_ERROR(ReadId(metadata, "padding_token_id", &v.padding_id));
  LOCKSTEP_RETURN_IF_ERROR(ReadFlag(metadata, "add_bos_token", &v.add_bos));
  LOCKSTEP_RETURN_IF_ERROR(ReadFlag(metadata, "add_eos_token", &v.add_eos));
  LOCKSTEP_RETURN_IF_ERROR(ReadFlag(metadata, "add_space_prefix", &v.add_space_prefix));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadFlag(metadata, "remove_extra_whitespaces", &v.remove_extra_whitespaces));
  return v;
}

}  // namespace lockstep
