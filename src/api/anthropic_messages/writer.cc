#include "api/anthropic_messages/writer.h"

#include <fmt/format.h>

#include <utility>

namespace lockstep {
namespace {

using Kind = AnswerDelta::Kind;

void AppendNamedEvent(const char* name, Json data, std::string* out) {
  Json event;
  event["type"] = name;
  event.update(data);
  *out += fmt::format("event: {}\n", name);
  AppendEvent(event, out);
}

// What a block calls its own text, and the delta that brings more of it.
struct Names {
  const char* field;
  const char* delta;
  const char* delta_field;
};

Names NamesOf(Kind kind) {
  switch (kind) {
    case Kind::kReasoning:
      return {"thinking", "thinking_delta", "thinking"};
    case Kind::kCall:
    case Kind::kArguments:
      return {"input", "input_json_delta", "partial_json"};
    case Kind::kContent:
      break;
  }
  return {"text", "text_delta", "text"};
}

}  // namespace

AnthropicWriter::AnthropicWriter(AnthropicAnswerOptions options)
    : options_(std::move(options)), parser_(options_.parser) {}

Json AnthropicWriter::Head() const {
  Json head;
  head["id"] = "msg_" + options_.unique;
  head["type"] = "message";
  head["role"] = "assistant";
  head["model"] = options_.model;
  return head;
}

Json AnthropicWriter::Usage() const {
  Json usage;
  usage["input_tokens"] = options_.input_tokens;
  usage["output_tokens"] = choice_.ended() ? choice_.end().usage.completion_tokens : 0;
  return usage;
}

const char* AnthropicWriter::StopReason() const {
  if (choice_.end().reason == FinishReason::kLength) return "max_tokens";
  if (parser_.calls() > 0) return "tool_use";
  return choice_.end().stop.empty() ? "end_turn" : "stop_sequence";
}

Json AnthropicWriter::StopSequence() const {
  const std::string& stop = choice_.end().stop;
  return stop.empty() ? Json() : Json(stop);
}

std::string AnthropicWriter::Begin() {
  Json start;
  Json& message = start["message"];
  message = Head();
  message["content"] = Json::array();
  message["stop_reason"] = nullptr;
  message["stop_sequence"] = nullptr;
  message["usage"] = Usage();
  std::string out;
  AppendNamedEvent("message_start", std::move(start), &out);
  return out;
}

Json AnthropicWriter::NewBlock(const AnswerDelta& part) {
  Json block;
  switch (part.kind) {
    case Kind::kReasoning:
      block["type"] = "thinking";
      block["thinking"] = "";
      block["signature"] = "";
      break;
    case Kind::kContent:
      block["type"] = "text";
      block["text"] = "";
      break;
    case Kind::kCall:
    case Kind::kArguments:
      block["type"] = "tool_use";
      block["id"] = fmt::format("toolu_{}{:04}", options_.unique, calls_++);
      block["name"] = part.text;
      block["input"] = Json::object();
      break;
  }
  return block;
}

void AnthropicWriter::CloseBlock(std::string* out) {
  if (!open_) return;
  open_ = false;
  if (options_.stream) {
    Json stop;
    stop["index"] = index_;
    AppendNamedEvent("content_block_stop", std::move(stop), out);
  } else if (Json& block = content_.back(); block["type"] == "tool_use") {
    // Arguments that were cut are no JSON; a message cannot hold them.
    const Json& text = block["input"];
    const auto input = ParseJson(text.is_string() ? text.get_ref<const std::string&>() : "{}");
    block["input"] = input.ok() && input->is_object() ? *input : Json::object();
  }
  ++index_;
}

void AnthropicWriter::Add(const AnswerDelta& part, std::string* out) {
  const bool continues =
      open_ && (part.kind == Kind::kArguments || (part.kind == kind_ && part.kind != Kind::kCall));
  if (!continues) {
    CloseBlock(out);
    Json block = NewBlock(part);
    if (options_.stream) {
      Json start;
      start["index"] = index_;
      start["content_block"] = std::move(block);
      AppendNamedEvent("content_block_start", std::move(start), out);
    } else {
      content_.push_back(std::move(block));
    }
    open_ = true;
    kind_ = part.kind;
  }
  if (part.kind == Kind::kCall) return;
  const Names names = NamesOf(part.kind);
  if (options_.stream) {
    Json delta;
    delta["index"] = index_;
    delta["delta"]["type"] = names.delta;
    delta["delta"][names.delta_field] = part.text;
    AppendNamedEvent("content_block_delta", std::move(delta), out);
    return;
  }
  Json& text = content_.back()[names.field];
  if (!text.is_string()) text = "";
  text.get_ref<std::string&>() += part.text;
}

Status AnthropicWriter::Take(size_t, GenerationEvent event, std::string* out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChoiceDelta delta,
                            choice_.Take(std::move(event), /*want_tokens=*/false));
  std::vector<AnswerDelta> parts;
  parser_.Push(delta.text, &parts);
  if (delta.ended) parser_.Finish(&parts);
  for (const AnswerDelta& part : parts) Add(part, out);
  if (delta.ended) CloseBlock(out);
  return OkStatus();
}

std::string AnthropicWriter::End() {
  if (!options_.stream) {
    Json message = Head();
    message["content"] = std::move(content_);
    message["stop_reason"] = StopReason();
    message["stop_sequence"] = StopSequence();
    message["usage"] = Usage();
    return DumpJson(message);
  }
  std::string out;
  Json delta;
  delta["delta"]["stop_reason"] = StopReason();
  delta["delta"]["stop_sequence"] = StopSequence();
  delta["usage"] = Usage();
  AppendNamedEvent("message_delta", std::move(delta), &out);
  AppendNamedEvent("message_stop", Json::object(), &out);
  return out;
}

}  // namespace lockstep
