#include "api/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/excerpt.h"
#include "api/fields.h"

namespace lockstep {
namespace {

// Fields of vLLM, llama-server and mlx_lm that change an answer and are not done here, beside
// OpenAI's own.
constexpr UnsupportedField kUnsupported[] = {
    {"guided_whitespace_pattern", nullptr},
    {"use_beam_search", "false"},
    {"length_penalty", "1"},
    {"early_stopping", "false"},
    {"include_stop_str_in_output", "false"},
    {"bad_words", "[]"},
    {"allowed_token_ids", nullptr},
    {"logits_processors", nullptr},
    {"prompt_logprobs", nullptr},
    {"truncate_prompt_tokens", nullptr},
    {"truncation", "\"disabled\""},
    {"spaces_between_special_tokens", "true"},
    {"return_tokens_as_token_ids", "false"},
    {"return_token_ids", "false"},
    {"priority", "0"},
    {"typical_p", "1"},
    {"xtc_probability", "0"},
    {"mirostat", "0"},
    {"dynatemp_range", "0"},
    {"dry_multiplier", "0"},
    {"repeat_penalty", nullptr},
    {"repeat_last_n", nullptr},
    {"top_n_sigma", "-1"},
    {"samplers", nullptr},
    {"reasoning_format", "\"auto\""},
    {"lora", "[]"},
    {"n_predict", nullptr},
    {"n_keep", "0"},
    {"n_probs", "0"},
    {"repetition_context_size", nullptr},
    {"presence_context_size", nullptr},
    {"frequency_context_size", nullptr},
    {"role_mapping", nullptr},
    {"adapters", nullptr},
};

Status ReadSampling(const Json& body, int32_t vocab_size, SamplingParams* sampling) {
  LOCKSTEP_RETURN_IF_ERROR(ReadFloat(body, "temperature", 0, 100, &sampling->temperature));
  LOCKSTEP_RETURN_IF_ERROR(ReadFloat(body, "top_p", 0, 1, &sampling->top_p));
  LOCKSTEP_RETURN_IF_ERROR(ReadFloat(body, "min_p", 0, 1, &sampling->min_p));
  LOCKSTEP_RETURN_IF_ERROR(ReadInt32(body, "top_k", -1, INT32_MAX, &sampling->top_k));
  if (sampling->top_k == -1 || sampling->top_k > vocab_size) sampling->top_k = 0;
  LOCKSTEP_RETURN_IF_ERROR(ReadFloat(body, "repetition_penalty", kMinRepetitionPenalty, 100,
                                     &sampling->repetition_penalty));
  LOCKSTEP_RETURN_IF_ERROR(ReadFloat(body, "presence_penalty", -2, 2, &sampling->presence_penalty));
  return ReadFloat(body, "frequency_penalty", -2, 2, &sampling->frequency_penalty);
}

Status ReadLogitBias(const Json& body, int32_t vocab_size, SamplingParams* sampling) {
  const Json* bias = FindField(body, "logit_bias");
  if (bias == nullptr) return OkStatus();
  if (!bias->is_object()) return WrongType("logit_bias", "an object", *bias);
  for (const auto& [key, value] : bias->get_ref<const Json::object_t&>()) {
    TokenId id = -1;
    const char* end = key.data() + key.size();
    const auto [stop, error] = std::from_chars(key.data(), end, id);
    const bool canonical = stop == end && error == std::errc() && key == std::to_string(id);
    if (!canonical || id < 0 || id >= vocab_size) {
      return InvalidArgument(fmt::format("'logit_bias' has the key \"{}\"; keys are token ids "
                                         "between 0 and {}",
                                         Excerpt(key), vocab_size - 1),
                             "logit_bias");
    }
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100)) {
      return InvalidArgument(
          fmt::format("'logit_bias[\"{}\"]' must be a number between -100 and 100", key),
          "logit_bias");
    }
    sampling->logit_bias.emplace_back(id, value.get<float>());
  }
  std::sort(sampling->logit_bias.begin(), sampling->logit_bias.end());
  return OkStatus();
}

Status ReadStreamOptions(const Json& body, GenerationFields* fields) {
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "stream", &fields->stream));
  const Json* options = FindField(body, "stream_options");
  if (options == nullptr) return OkStatus();
  if (!options->is_object()) return WrongType("stream_options", "an object", *options);
  if (!fields->stream) {
    return InvalidArgument("'stream_options' is only allowed when 'stream' is true",
                           "stream_options");
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(*options, "include_usage", &fields->include_usage));
  bool ignored = false;
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(*options, "include_obfuscation", &ignored));
  constexpr UnsupportedField kOptions[] = {{"continuous_usage_stats", "false"}};
  return RefuseUnsupported(*options, kOptions);
}

// As in vLLM: absent, or not empty.
Status ReadCacheSalt(const Json& body, std::string* salt) {
  if (FindField(body, "cache_salt") == nullptr) return OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "cache_salt", salt));
  if (!salt->empty() && salt->size() <= kMaxSaltBytes) return OkStatus();
  return InvalidArgument(fmt::format("'cache_salt' must have 1 to {} bytes", kMaxSaltBytes),
                         "cache_salt");
}

}  // namespace

Status ReadStop(const Json& body, std::string_view name, StopStrings* stop) {
  const Json* value = FindField(body, name);
  if (value == nullptr) return OkStatus();
  std::vector<std::string> all;
  if (value->is_string()) {
    all.push_back(value->get<std::string>());
  } else if (value->is_array()) {
    for (size_t i = 0; i < value->size(); ++i) {
      const Json& item = (*value)[i];
      if (!item.is_string()) return WrongType(fmt::format("{}[{}]", name, i), "a string", item);
      all.push_back(item.get<std::string>());
    }
  } else {
    return WrongType(name, "a string or an array of strings", *value);
  }
  if (all.size() > kMaxStopStrings) {
    return InvalidArgument(fmt::format("'{}' may hold at most {} strings", name, kMaxStopStrings),
                           std::string(name));
  }
  size_t total = 0;
  for (const std::string& text : all) {
    if (text.size() > kMaxStopBytes) {
      return InvalidArgument(
          fmt::format("a '{}' string may have at most {} bytes", name, kMaxStopBytes),
          std::string(name));
    }
    total += text.size();
  }
  if (total > kMaxStopTotalBytes) {
    return InvalidArgument(fmt::format("all '{}' strings together may have at most {} bytes", name,
                                       kMaxStopTotalBytes),
                           std::string(name));
  }
  // Once, here, for all choices of the request.
  *stop = StopStrings(std::move(all));
  return OkStatus();
}

Status RefuseUnsupported(const Json& body, std::span<const UnsupportedField> fields) {
  for (const UnsupportedField& field : fields) {
    const Json* value = FindField(body, field.name);
    if (value == nullptr) continue;
    if (field.harmless != nullptr && *value == Json::parse(field.harmless)) continue;
    return Unimplemented(fmt::format("'{}' is not supported yet", field.name), field.name);
  }
  return OkStatus();
}

Status ReadMaxTokens(const Json& body, const char* name, int32_t low, GenerationRequest* request) {
  const Json* value = FindField(body, name);
  if (value == nullptr) return OkStatus();
  int32_t limit = 0;
  LOCKSTEP_RETURN_IF_ERROR(ReadInt32(body, name, low, INT32_MAX, &limit));
  if (request->max_tokens >= 0 && request->max_tokens != limit) {
    return InvalidArgument("'max_tokens' and 'max_completion_tokens' differ", name);
  }
  if (request->min_tokens > limit) {
    return InvalidArgument(fmt::format("'min_tokens' must not be greater than '{}'", name),
                           "min_tokens");
  }
  request->max_tokens = limit;
  return OkStatus();
}

Result<GenerationFields> ReadGenerationFields(const Json& body, const ServedModel& model) {
  GenerationFields fields;
  GenerationRequest& request = fields.request;
  if (FindField(body, "model") != nullptr) {
    std::string name;
    LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "model", &name));
    LOCKSTEP_RETURN_IF_ERROR(CheckModelName(model, name));
  }
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnsupported(body, kUnsupported));
  LOCKSTEP_RETURN_IF_ERROR(ReadSampling(body, model.vocab_size, &request.sampling));
  LOCKSTEP_RETURN_IF_ERROR(ReadLogitBias(body, model.vocab_size, &request.sampling));
  if (FindField(body, "seed") != nullptr) {
    int64_t seed = 0;
    LOCKSTEP_RETURN_IF_ERROR(ReadInt(body, "seed", INT64_MIN, INT64_MAX, &seed));
    request.seed = static_cast<uint64_t>(seed);
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadStop(body, "stop", &request.stop));
  if (const Json* ids = FindField(body, "stop_token_ids")) {
    LOCKSTEP_ASSIGN_OR_RETURN(request.stop_token_ids,
                              AsTokens(*ids, "stop_token_ids", model.vocab_size));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "ignore_eos", &request.ignore_eos));
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(body, "skip_special_tokens", &request.skip_special_tokens));
  LOCKSTEP_RETURN_IF_ERROR(ReadInt32(body, "min_tokens", 0, INT32_MAX, &request.min_tokens));
  LOCKSTEP_RETURN_IF_ERROR(ReadInt32(body, "n", 1, kMaxChoices, &fields.n));
  LOCKSTEP_RETURN_IF_ERROR(ReadStreamOptions(body, &fields));
  LOCKSTEP_RETURN_IF_ERROR(ReadCacheSalt(body, &request.cache_salt));
  std::string ignored;
  LOCKSTEP_RETURN_IF_ERROR(ReadString(body, "user", &ignored));
  return fields;
}

}  // namespace lockstep
