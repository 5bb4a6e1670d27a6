#include "api/openai_chat/writer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/call_id.h"
#include "api/logprobs.h"

namespace lockstep {
namespace {

// The answer's own part of its id.
std::string_view Unique(std::string_view id) {
  return id.substr(std::min(id.find('-') + 1, id.size()));
}

Json CallJson(std::string id, const std::string& name) {
  Json call;
  call["id"] = std::move(id);
  call["type"] = "function";
  call["function"]["name"] = name;
  call["function"]["arguments"] = "";
  return call;
}

}  // namespace

ChatWriter::ChatWriter(ChatAnswerOptions options)
    : options_(std::move(options)),
      states_(static_cast<size_t>(options_.choices), State(options_.parser)) {
  options_.head.object = options_.stream ? "chat.completion.chunk" : "chat.completion";
}

Json ChatWriter::Logprobs(const ChoiceDelta& delta) const {
  Json content = Json::array();
  for (const ShownToken& token : delta.tokens) {
    content.push_back(ChatLogprob(token, options_.top_logprobs, *options_.tokenizer));
  }
  return content;
}

void ChatWriter::AppendChunk(size_t index, Json delta, Json logprobs, Json finish_reason,
                             std::string* out) const {
  Json chunk = HeadJson(options_.head);
  Json choice;
  choice["index"] = index;
  choice["delta"] = std::move(delta);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = std::move(finish_reason);
  chunk["choices"] = Json::array({std::move(choice)});
  if (options_.include_usage) chunk["usage"] = nullptr;
  AppendEvent(chunk, out);
}

std::string ChatWriter::Begin() {
  std::string out;
  for (size_t i = 0; i < states_.size(); ++i) {
    Json delta;
    delta["role"] = "assistant";
    delta["content"] = "";
    delta["refusal"] = nullptr;
    AppendChunk(i, std::move(delta), nullptr, nullptr, &out);
  }
  return out;
}

std::string ChatWriter::IdOfCall(size_t index, size_t call) const {
  return CallId(options_.parser.tools, Unique(options_.head.id), index * 1000 + call);
}

std::vector<Json> ChatWriter::Deltas(size_t index, const std::vector<AnswerDelta>& parts) {
  State& state = states_[index];
  std::vector<Json> deltas;
  for (const AnswerDelta& part : parts) {
    Json delta;
    switch (part.kind) {
      case AnswerDelta::Kind::kReasoning:
        delta["reasoning_content"] = part.text;
        delta["reasoning"] = part.text;
        break;
      case AnswerDelta::Kind::kContent:
        delta["content"] = part.text;
        break;
      case AnswerDelta::Kind::kCall: {
        Json call = CallJson(IdOfCall(index, state.calls), part.text);
        call["index"] = state.calls++;
        delta["tool_calls"] = Json::array({std::move(call)});
        break;
      }
      case AnswerDelta::Kind::kArguments: {
        Json call;
        call["index"] = state.calls - 1;
        call["function"]["arguments"] = part.text;
        delta["tool_calls"] = Json::array({std::move(call)});
        break;
      }
    }
    deltas.push_back(std::move(delta));
  }
  return deltas;
}

void ChatWriter::Collect(size_t index, const std::vector<AnswerDelta>& parts) {
  State& state = states_[index];
  for (const AnswerDelta& part : parts) {
    switch (part.kind) {
      case AnswerDelta::Kind::kReasoning:
        state.reasoning += part.text;
        break;
      case AnswerDelta::Kind::kContent:
        state.content += part.text;
        break;
      case AnswerDelta::Kind::kCall:
        state.tool_calls.push_back(CallJson(IdOfCall(index, state.calls++), part.text));
        break;
      case AnswerDelta::Kind::kArguments: {
        Json& arguments = state.tool_calls.back()["function"]["arguments"];
        arguments.get_ref<std::string&>() += part.text;
        break;
      }
    }
  }
}

Status ChatWriter::Take(size_t index, GenerationEvent event, std::string* out) {
  State& state = states_[index];
  const bool want_tokens = options_.top_logprobs >= 0;
  LOCKSTEP_ASSIGN_OR_RETURN(const ChoiceDelta delta,
                            state.choice.Take(std::move(event), want_tokens));
  std::vector<AnswerDelta> parts;
  state.parser.Push(delta.text, &parts);
  if (delta.ended) state.parser.Finish(&parts);
  if (!options_.stream) {
    Collect(index, parts);
    for (Json& entry : Logprobs(delta)) state.logprobs.push_back(std::move(entry));
    return OkStatus();
  }
  std::vector<Json> deltas = Deltas(index, parts);
  if (deltas.empty() && !delta.tokens.empty()) {
    // Their text is held back, their log-probabilities are not.
    Json nothing;
    nothing["content"] = "";
    deltas.push_back(std::move(nothing));
  }
  for (size_t i = 0; i < deltas.size(); ++i) {
    Json logprobs;
    if (want_tokens && i == 0) logprobs["content"] = Logprobs(delta);
    if (want_tokens && i == 0) logprobs["refusal"] = nullptr;
    AppendChunk(index, std::move(deltas[i]), std::move(logprobs), nullptr, out);
  }
  if (delta.ended) AppendChunk(index, Json::object(), nullptr, FinishReasonOf(state), out);
  return OkStatus();
}

const char* ChatWriter::FinishReasonOf(const State& state) const {
  const bool called = state.parser.calls() > 0;
  const bool stopped = state.choice.end().reason == FinishReason::kStop;
  return called && stopped ? "tool_calls" : state.choice.finish_reason();
}

Json ChatWriter::Message(State* state) const {
  Json message;
  message["role"] = "assistant";
  const bool nothing_but_calls = state->content.empty() && !state->tool_calls.empty();
  message["content"] = nothing_but_calls ? Json() : Json(std::move(state->content));
  message["refusal"] = nullptr;
  if (!state->reasoning.empty()) {
    message["reasoning_content"] = state->reasoning;
    message["reasoning"] = std::move(state->reasoning);
  }
  if (!state->tool_calls.empty()) message["tool_calls"] = std::move(state->tool_calls);
  return message;
}

Usage ChatWriter::TotalUsage() const {
  // The prompt is one, however many choices answer it.
  Usage total = states_[0].choice.end().usage;
  for (size_t i = 1; i < states_.size(); ++i) {
    total.completion_tokens += states_[i].choice.end().usage.completion_tokens;
  }
  return total;
}

std::string ChatWriter::End() {
  Json answer = HeadJson(options_.head);
  answer["choices"] = Json::array();
  if (options_.stream) {
    std::string out;
    if (options_.include_usage) {
      answer["usage"] = UsageJson(TotalUsage());
      AppendEvent(answer, &out);
    }
    return out + "data: [DONE]\n\n";
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    Json choice;
    choice["index"] = i;
    choice["message"] = Message(&state);
    choice["logprobs"] = nullptr;
    if (options_.top_logprobs >= 0) {
      Json logprobs;
      logprobs["content"] = std::move(state.logprobs);
      logprobs["refusal"] = nullptr;
      choice["logprobs"] = std::move(logprobs);
    }
    choice["finish_reason"] = FinishReasonOf(state);
    answer["choices"].push_back(std::move(choice));
  }
  answer["usage"] = UsageJson(TotalUsage());
  return DumpJson(answer);
}

}  // namespace lockstep
