#include "api/prompt.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/endpoint.h"
#include "engine/request_check.h"

namespace lockstep {
namespace {

ContextUse Use(size_t tokens, bool at_least, const ServedModel& model,
               const GenerationRequest& request, const PromptName& name) {
  return {.prompt_tokens = static_cast<int64_t>(tokens),
          .at_least = at_least,
          .max_tokens = request.max_tokens,
          .max_context = model.max_context,
          .prompt_param = name.prompt,
          .max_tokens_param = name.max_tokens};
}

// Of shorter prompts there is nothing to gain.
constexpr size_t kWorthKeeping = 256;

// Whether the model's caches cannot be cut anywhere, so that it matters where one is kept.
bool KeepsStates(const ServedModel& model) {
  const std::vector<CacheGroupSpec>& groups = model.engine->info().cache_groups;
  return std::any_of(groups.begin(), groups.end(),
                     [](const auto& group) { return group.kind == CacheKind::kRecurrent; });
}

// The tokens before the opening of the answer, which is what the template adds at the end when it
// is asked to. 0: not known, or of no use.
int32_t StableTokens(const Json& context, const ServedModel& model, const RenderedPrompt& prompt) {
  constexpr const char* kOpens = "add_generation_prompt";
  if (!KeepsStates(model) || prompt.tokens.size() < kWorthKeeping) return 0;
  if (!context.value(kOpens, false)) return 0;
  Json without = context;
  without[kOpens] = false;
  const Result<std::string> text = model.chat_template->Render(DumpJson(without));
  if (!text.ok() || !std::string_view(prompt.text).starts_with(*text)) return 0;
  size_t bytes = 0;
  int32_t tokens = 0;
  for (const TokenId token : prompt.tokens) {
    bytes += model.tokenizer->TokenBytes(token).size();
    if (bytes > text->size()) break;
    ++tokens;
  }
  return tokens;
}

}  // namespace

Result<std::vector<TokenId>> EncodePrompt(std::string_view text, const EncodeOptions& options,
                                          const ServedModel& model,
                                          const GenerationRequest& request, const PromptName& name,
                                          const std::atomic<bool>* client_gone) {
  LOCKSTEP_RETURN_IF_ERROR(CheckClient(client_gone));
  const size_t fewest = model.tokenizer->FewestTokens(text);
  // Only when the prompt alone is too long: what the output adds deserves the exact number.
  if (fewest > static_cast<size_t>(model.max_context)) {
    LOCKSTEP_RETURN_IF_ERROR(CheckContext(Use(fewest, /*at_least=*/true, model, request, name)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, model.tokenizer->Encode(text, options));
  LOCKSTEP_RETURN_IF_ERROR(CheckPromptLength(tokens.size(), model, request, name));
  return tokens;
}

Result<std::string> RenderText(const Json& context, const ServedModel& model) {
  if (model.chat_template == nullptr) {
    return InvalidArgument(
        "this model has no chat template; use /v1/completions with a finished prompt", "messages");
  }
  return model.chat_template->Render(DumpJson(context));
}

Result<RenderedPrompt> RenderPrompt(const Json& context, const ServedModel& model,
                                    const GenerationRequest& request, const PromptName& name,
                                    const std::atomic<bool>* client_gone) {
  LOCKSTEP_RETURN_IF_ERROR(CheckClient(client_gone));
  RenderedPrompt prompt;
  LOCKSTEP_ASSIGN_OR_RETURN(prompt.text, RenderText(context, model));
  // The template writes BOS itself: adding the tokenizer's would make two.
  EncodeOptions options;
  options.add_special = false;
  LOCKSTEP_ASSIGN_OR_RETURN(prompt.tokens,
                            EncodePrompt(prompt.text, options, model, request, name, client_gone));
  if (prompt.tokens.empty()) {
    return InvalidArgument("the prompt that 'messages' render to has no tokens", "messages");
  }
  prompt.stable_tokens = StableTokens(context, model, prompt);
  return prompt;
}

Status CheckPromptLength(size_t tokens, const ServedModel& model, const GenerationRequest& request,
                         const PromptName& name) {
  return CheckContext(Use(tokens, /*at_least=*/false, model, request, name));
}

}  // namespace lockstep
