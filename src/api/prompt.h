// From a prompt's text to its tokens, within what the model's context holds. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/served_model.h"
#include "base/status.h"
#include "core/types.h"
#include "engine/request.h"
#include "text/tokenizer.h"

namespace lockstep {

// Which prompt it is, for errors: "messages", "prompt", "prompt[3]".
struct PromptName {
  std::string prompt;
  const char* max_tokens = "max_tokens";  // the field that asks for the output
};

// Refuses a prompt whose bytes alone show that it is too long without encoding it. The prompt may
// be empty. Errors: kContextLength naming the tokens and the limit, kCancelled when the client has
// left, and what the tokenizer says.
Result<std::vector<TokenId>> EncodePrompt(std::string_view text, const EncodeOptions& options,
                                          const ServedModel& model,
                                          const GenerationRequest& request, const PromptName& name,
                                          const std::atomic<bool>* client_gone);

// A conversation through the model's chat template; `context` is what the template renders. Errors:
// what the template says, or that there is none.
Result<std::string> RenderText(const Json& context, const ServedModel& model);

struct RenderedPrompt {
  std::string text;
  std::vector<TokenId> tokens;  // not empty
  int32_t stable_tokens = 0;    // as GenerationRequest::stable_tokens
};

// The same with its tokens. Errors as of both above.
Result<RenderedPrompt> RenderPrompt(const Json& context, const ServedModel& model,
                                    const GenerationRequest& request, const PromptName& name,
                                    const std::atomic<bool>* client_gone);

// Refuses what cannot fit, before it is copied for each choice. Errors: kContextLength.
Status CheckPromptLength(size_t tokens, const ServedModel& model, const GenerationRequest& request,
                         const PromptName& name);

}  // namespace lockstep
