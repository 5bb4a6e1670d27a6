#include "api/openai_completions/endpoint.h"

#include <algorithm>
#include <utility>

#include "api/openai_completions/request.h"
#include "api/openai_completions/writer.h"
#include "api/or_error.h"
#include "text/detokenizer.h"

namespace lockstep {
namespace {

// What each token of the prompt adds to the echoed text. A prompt given as text comes back with the
// special tokens written in it, but without the BOS that the tokenizer put before it.
std::vector<std::string> EchoPieces(const CompletionPrompt& prompt, bool skip_special,
                                    const std::shared_ptr<const Tokenizer>& tokenizer) {
  DecodeOptions options;
  options.skip_special = skip_special && !prompt.from_text;
  Detokenizer detokenizer(tokenizer, options);
  const bool hide_bos = prompt.from_text && tokenizer->adds_bos();
  std::vector<std::string> pieces;
  for (size_t i = 0; i < prompt.tokens.size(); ++i) {
    const bool hidden = i == 0 && hide_bos && prompt.tokens[0] == tokenizer->bos_id();
    pieces.push_back(hidden ? std::string() : detokenizer.Push(prompt.tokens[i]));
  }
  pieces.back() += detokenizer.Finish();
  return pieces;
}

std::vector<GenerationRequest> MakeRequests(const CompletionRequest& completion) {
  const bool ranked = completion.best_of > completion.fields.n;
  std::vector<GenerationRequest> requests;
  for (const CompletionPrompt& prompt : completion.prompts) {
    for (int32_t i = 0; i < completion.best_of; ++i) {
      GenerationRequest request = completion.fields.request;
      request.prompt = prompt.tokens;
      request.sampling.logprobs = ranked ? std::max(completion.logprobs, 0) : completion.logprobs;
      request.sampling.stream = static_cast<uint64_t>(i);
      if (completion.echo) request.prompt_logprobs = completion.logprobs;
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

Result<GenerationJob> MakeJob(const ApiContext& context, const ApiCall& call) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, ReadyModel(context));
  LOCKSTEP_ASSIGN_OR_RETURN(CompletionRequest completion,
                            ReadCompletionRequest(call.body, *model, call.client_gone));
  CompletionAnswerOptions options;
  options.head = {"cmpl-" + call.unique, "", call.created, model->id, model->fingerprint};
  options.n = completion.fields.n;
  options.best_of = completion.best_of;
  options.stream = completion.fields.stream;
  options.include_usage = completion.fields.include_usage;
  options.logprobs = completion.logprobs;
  options.tokenizer = model->tokenizer;
  if (completion.echo) {
    for (const CompletionPrompt& prompt : completion.prompts) {
      options.echo.push_back(
          EchoPieces(prompt, completion.fields.request.skip_special_tokens, model->tokenizer));
      options.echo_tokens.push_back(prompt.tokens);
    }
  }
  GenerationJob job;
  job.model = model;
  job.stream = completion.fields.stream;
  job.requests = MakeRequests(completion);
  job.writer = std::make_unique<CompletionWriter>(std::move(options), completion.prompts.size());
  return job;
}

}  // namespace

ApiResult HandleCompletions(const ApiContext& context, const ApiCall& call) {
  return OrError(MakeJob(context, call));
}

}  // namespace lockstep
