// The fields that both OpenAI generation endpoints share, read and checked once. Thread-safe.
// Field by field: docs/http_api.md.
#pragma once

#include <cstdint>
#include <span>

#include "api/endpoint.h"
#include "api/json.h"
#include "base/status.h"
#include "engine/request.h"

namespace lockstep {

inline constexpr int32_t kMaxChoices = 128;
inline constexpr int32_t kMaxTopLogprobs = 20;
inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopBytes = 4096;
inline constexpr size_t kMaxSaltBytes = 1024;
inline constexpr size_t kMaxStopTotalBytes = 16384;  // their automaton takes 24 times as much
// Below, the logits of what was said already could leave the range of floats.
inline constexpr double kMinRepetitionPenalty = 0.01;

struct GenerationFields {
  GenerationRequest request;  // all but prompt, sampling.logprobs and sink
  int32_t n = 1;
  bool stream = false;
  bool include_usage = false;
};

// Errors: kInvalidArgument or kUnimplemented naming the field; kNotFound for the model's name.
Result<GenerationFields> ReadGenerationFields(const Json& body, const ServedModel& model);

// "max_tokens" and the like: at least `low`; request.min_tokens must not pass it.
Status ReadMaxTokens(const Json& body, const char* name, int32_t low, GenerationRequest* request);

// Strings that end an answer: one, or a list, in the field `name`.
Status ReadStop(const Json& body, std::string_view name, StopStrings* stop);

// A field that the API (or a well-known server) has and this one does not do yet. Null or the
// harmless value is accepted; anything else is refused by name.
struct UnsupportedField {
  const char* name;
  const char* harmless;  // JSON, or null when only null is harmless
};
Status RefuseUnsupported(const Json& body, std::span<const UnsupportedField> fields);

}  // namespace lockstep
