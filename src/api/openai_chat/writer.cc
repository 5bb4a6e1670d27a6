#include "api/openai_chat/writer.h"

#include <utility>

#include "api/logprobs.h"

namespace lockstep {

ChatWriter::ChatWriter(ChatAnswerOptions options)
    : options_(std::move(options)), states_(options_.choices) {
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

Status ChatWriter::Take(size_t index, GenerationEvent event, std::string* out) {
  State& state = states_[index];
  const bool want_tokens = options_.top_logprobs >= 0;
  LOCKSTEP_ASSIGN_OR_RETURN(ChoiceDelta delta, state.choice.Take(std::move(event), want_tokens));
  if (!options_.stream) {
    state.content += delta.text;
    for (Json& entry : Logprobs(delta)) state.logprobs.push_back(std::move(entry));
    return OkStatus();
  }
  if (!delta.text.empty() || !delta.tokens.empty()) {
    Json logprobs;
    if (want_tokens) logprobs["content"] = Logprobs(delta);
    if (want_tokens) logprobs["refusal"] = nullptr;
    Json json_delta;
    json_delta["content"] = std::move(delta.text);
    AppendChunk(index, std::move(json_delta), std::move(logprobs), nullptr, out);
  }
  if (delta.ended) {
    AppendChunk(index, Json::object(), nullptr, state.choice.finish_reason(), out);
  }
  return OkStatus();
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
    choice["message"]["role"] = "assistant";
    choice["message"]["content"] = std::move(state.content);
    choice["message"]["refusal"] = nullptr;
    choice["logprobs"] = nullptr;
    if (options_.top_logprobs >= 0) {
      Json logprobs;
      logprobs["content"] = std::move(state.logprobs);
      logprobs["refusal"] = nullptr;
      choice["logprobs"] = std::move(logprobs);
    }
    choice["finish_reason"] = state.choice.finish_reason();
    answer["choices"].push_back(std::move(choice));
  }
  answer["usage"] = UsageJson(TotalUsage());
  return DumpJson(answer);
}

}  // namespace lockstep
