// Writes the answer of POST /v1/completions: one text_completion, or a stream of them that ends in
// [DONE]. Choices are numbered prompt by prompt: choice c of prompt p is p * n + c.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/choice.h"
#include "api/endpoint.h"
#include "api/logprobs.h"
#include "text/tokenizer.h"

namespace lockstep {

struct CompletionAnswerOptions {
  AnswerHead head;  // object is set by the writer
  int32_t n = 1;
  int32_t best_of = 1;  // requests a prompt; the n likeliest are answered
  bool stream = false;
  bool include_usage = false;
  int32_t logprobs = -1;  // -1: none
  // Echo: what each token of each prompt adds to the text. Empty: no echo.
  std::vector<std::vector<std::string>> echo;
  std::vector<std::vector<TokenId>> echo_tokens;  // parallel to echo
  std::shared_ptr<const Tokenizer> tokenizer;
};

class CompletionWriter : public AnswerWriter {
 public:
  // `prompts` prompts, best_of requests each, in order.
  CompletionWriter(CompletionAnswerOptions options, size_t prompts);

  std::string Begin() override { return {}; }
  Status Take(size_t index, GenerationEvent event, std::string* out) override;
  std::string End() override;

 private:
  struct State {
    explicit State(int32_t top) : logprobs(top) {}
    Choice choice;
    LegacyLogprobs logprobs;
    bool echoed = false;
    std::string text;  // non-stream
  };
  std::string Echo(size_t index, const std::vector<PositionLogprobs>& prompt, State* state) const;
  void AppendChunk(size_t index, std::string text, Json logprobs, Json finish_reason,
                   std::string* out) const;
  std::vector<size_t> Chosen(size_t prompt) const;
  Usage TotalUsage() const;

  CompletionAnswerOptions options_;
  size_t prompts_;
  std::vector<State> states_;
};

}  // namespace lockstep
