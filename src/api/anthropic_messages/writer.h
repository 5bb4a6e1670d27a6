// Writes the answer of POST /v1/messages: one message, or its events in the order message_start,
// then for each block content_block_start, its deltas and content_block_stop, then message_delta
// and message_stop. The deltas joined are the message's blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/choice.h"
#include "api/endpoint.h"
#include "text/answer_parser.h"

namespace lockstep {

struct AnthropicAnswerOptions {
  std::string unique;  // the answer's own part of its ids
  std::string model;
  bool stream = false;
  int32_t input_tokens = 0;
  AnswerParserOptions parser;
};

class AnthropicWriter : public AnswerWriter {
 public:
  explicit AnthropicWriter(AnthropicAnswerOptions options);

  std::string Begin() override;
  Status Take(size_t index, GenerationEvent event, std::string* out) override;
  std::string End() override;

 private:
  Json Head() const;
  Json Usage() const;
  const char* StopReason() const;
  Json StopSequence() const;

  // The block that `part` begins.
  Json NewBlock(const AnswerDelta& part);
  void Add(const AnswerDelta& part, std::string* out);
  void CloseBlock(std::string* out);

  AnthropicAnswerOptions options_;
  Choice choice_;
  AnswerParser parser_;
  // The block being written; content_ has it and those before it, of a message that is not
  // streamed.
  AnswerDelta::Kind kind_ = AnswerDelta::Kind::kContent;
  bool open_ = false;
  size_t index_ = 0;
  size_t calls_ = 0;
  Json content_ = Json::array();
};

}  // namespace lockstep
