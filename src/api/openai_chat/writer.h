// Writes the answer of POST /v1/chat/completions: one chat.completion, or a stream of
// chat.completion.chunk events that ends in [DONE]. The deltas joined are the message's content.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/choice.h"
#include "api/endpoint.h"
#include "text/tokenizer.h"

namespace lockstep {

struct ChatAnswerOptions {
  AnswerHead head;  // object is set by the writer
  int32_t choices = 1;
  bool stream = false;
  bool include_usage = false;
  int32_t top_logprobs = -1;  // -1: none
  std::shared_ptr<const Tokenizer> tokenizer;
};

class ChatWriter : public AnswerWriter {
 public:
  explicit ChatWriter(ChatAnswerOptions options);

  std::string Begin() override;
  Status Take(size_t index, GenerationEvent event, std::string* out) override;
  std::string End() override;

 private:
  struct State {
    Choice choice;
    std::string content;            // non-stream
    Json logprobs = Json::array();  // non-stream
  };
  Json Logprobs(const ChoiceDelta& delta) const;
  void AppendChunk(size_t index, Json delta, Json logprobs, Json finish_reason,
                   std::string* out) const;
  Usage TotalUsage() const;

  ChatAnswerOptions options_;
  std::vector<State> states_;
};

}  // namespace lockstep
