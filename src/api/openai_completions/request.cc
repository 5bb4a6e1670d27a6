#include "api/openai_completions/request.h"

#include <fmt/format.h>

#include <utility>

#include "api/fields.h"
#include "api/prompt.h"
#include "api/structured_output.h"

namespace lockstep {
namespace {

constexpr UnsupportedField kUnsupported[] = {
    {"suffix", "\"\""},
    {"add_special_tokens", "true"},
};

// What the prompts of one request have in common.
struct PromptContext {
  const ServedModel& model;
  const GenerationRequest& request;
  const std::atomic<bool>* client_gone;
};

Result<CompletionPrompt> EncodeText(const std::string& text, const std::string& path,
                                    const PromptContext& context) {
  CompletionPrompt prompt;
  prompt.from_text = true;
  LOCKSTEP_ASSIGN_OR_RETURN(prompt.tokens, EncodePrompt(text, {}, context.model, context.request,
                                                        {path}, context.client_gone));
  if (prompt.tokens.empty()) {
    return InvalidArgument(
        fmt::format(
            "'{}' has no tokens, and this model has no beginning-of-sequence token to start from",
            path),
        path);
  }
  return prompt;
}

Result<CompletionPrompt> ReadOne(const Json& value, const std::string& path,
                                 const PromptContext& context) {
  if (value.is_string()) return EncodeText(value.get_ref<const std::string&>(), path, context);
  CompletionPrompt prompt;
  LOCKSTEP_ASSIGN_OR_RETURN(prompt.tokens, AsTokens(value, path, context.model.vocab_size));
  if (prompt.tokens.empty()) return InvalidArgument(fmt::format("'{}' has no tokens", path), path);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPromptLength(prompt.tokens.size(), context.model, context.request, {path}));
  return prompt;
}

Status ReadPrompts(const Json& body, const PromptContext& context, size_t choices,
                   std::vector<CompletionPrompt>* prompts) {
  const Json* value = FindField(body, "prompt");
  if (value == nullptr) return Missing("prompt");
  if (!value->is_string() && !value->is_array()) {
    return WrongType("prompt", "a string, an array of strings, or token ids", *value);
  }
  const bool many = value->is_array() && !value->empty() &&
                    (value->front().is_string() || value->front().is_array());
  const size_t rows = (many ? value->size() : 1) * choices;
  if (rows > kMaxCompletionRows) {
    return InvalidArgument(
        fmt::format("'prompt' asks for {} completions; one request may ask for at most {}", rows,
                    kMaxCompletionRows),
        "prompt");
  }
  if (!many) {
    LOCKSTEP_ASSIGN_OR_RETURN(CompletionPrompt one, ReadOne(*value, "prompt", context));
    prompts->push_back(std::move(one));
    return OkStatus();
  }
  for (size_t i = 0; i < value->size(); ++i) {
    const Json& item = (*value)[i];
    const std::string path = fmt::format("prompt[{}]", i);
    if (item.type() != value->front().type()) {
      return WrongType(path, JsonKind(value->front()), item);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(CompletionPrompt one, ReadOne(item, path, context));
    prompts->push_back(std::move(one));
  }
  return OkStatus();
}

Status ReadBestOf(const Json& body, CompletionRequest* request) {
  request->best_of = request->fields.n;
  if (FindField(body, "best_of") == nullptr) return OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(ReadInt32(body, "best_of", 1, kMaxChoices, &request->best_of));
  if (request->best_of < request->fields.n) {
    return InvalidArgument("'best_of' must not be less than 'n'", "best_of");
  }
  if (request->best_of > request->fields.n && request->fields.stream) {
    return InvalidArgument("'best_of' greater than 'n' cannot be streamed", "best_of");
  }
  return OkStatus();
}

}  // namespace

Result<CompletionRequest> ReadCompletionRequest(std::string_view body, const ServedModel& model,
                                                const std::atomic<bool>* client_gone) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(body));
  CompletionRequest request;
  LOCKSTEP_ASSIGN_OR_RETURN(request.fields, ReadGenerationFields(json, model));
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnsupported(json, kUnsupported));
  LOCKSTEP_RETURN_IF_ERROR(ReadMaxTokens(json, "max_tokens", 0, &request.fields.request));
  LOCKSTEP_RETURN_IF_ERROR(ReadBestOf(json, &request));
  LOCKSTEP_RETURN_IF_ERROR(ReadInt32(json, "logprobs", 0, kMaxTopLogprobs, &request.logprobs));
  LOCKSTEP_RETURN_IF_ERROR(ReadBool(json, "echo", &request.echo));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto structured, ReadStructuredOutput(json));
  if (structured) {
    LOCKSTEP_ASSIGN_OR_RETURN(request.fields.request.grammar, CompileGrammar(*structured, model));
  }
  const PromptContext context{model, request.fields.request, client_gone};
  LOCKSTEP_RETURN_IF_ERROR(
      ReadPrompts(json, context, static_cast<size_t>(request.best_of), &request.prompts));
  return request;
}

}  // namespace lockstep
