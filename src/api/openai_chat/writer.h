// Writes the answer of POST /v1/chat/completions: one chat.completion, or a stream of
// chat.completion.chunk events that ends in [DONE]. The deltas joined are the message's fields:
// content, reasoning and tool calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/choice.h"
#include "api/endpoint.h"
#include "text/answer_parser.h"
#include "text/tokenizer.h"

namespace lockstep {

struct ChatAnswerOptions {
  AnswerHead head;  // object is set by the writer
  int32_t choices = 1;
  bool stream = false;
  bool include_usage = false;
  int32_t top_logprobs = -1;  // -1: none
  std::shared_ptr<const Tokenizer> tokenizer;
  AnswerParserOptions parser;
};

class ChatWriter : public AnswerWriter {
 public:
  explicit ChatWriter(ChatAnswerOptions options);

  std::string Begin() override;
  Status Take(size_t index, GenerationEvent event, std::string* out) override;
  std::string End() override;

 private:
  struct State {
    explicit State(const AnswerParserOptions& options) : parser(options) {}
    Choice choice;
    AnswerParser parser;
    size_t calls = 0;  // shown so far
    // Non-stream.
    std::string content;
    std::string reasoning;
    Json tool_calls = Json::array();
    Json logprobs = Json::array();
  };
  Json Logprobs(const ChoiceDelta& delta) const;
  std::string IdOfCall(size_t index, size_t call) const;
  std::vector<Json> Deltas(size_t index, const std::vector<AnswerDelta>& parts);
  void Collect(size_t index, const std::vector<AnswerDelta>& parts);
  void AppendChunk(size_t index, Json delta, Json logprobs, Json finish_reason,
                   std::string* out) const;
  const char* FinishReasonOf(const State& state) const;
  Json Message(State* state) const;
  Usage TotalUsage() const;

  ChatAnswerOptions options_;
  std::vector<State> states_;
};

}  // namespace lockstep
