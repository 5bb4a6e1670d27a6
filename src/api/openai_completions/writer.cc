#include "api/openai_completions/writer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockstep {

CompletionWriter::CompletionWriter(CompletionAnswerOptions options, size_t prompts)
    : options_(std::move(options)), prompts_(prompts) {
  options_.head.object = "text_completion";
  states_.assign(prompts * static_cast<size_t>(options_.best_of), State(options_.logprobs));
}

std::string CompletionWriter::Echo(size_t index, const std::vector<PositionLogprobs>& prompt,
                                   State* state) const {
  const size_t which = index / static_cast<size_t>(options_.best_of);
  const std::vector<std::string>& pieces = options_.echo[which];
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    text += pieces[i];
    if (options_.logprobs < 0) continue;
    if (i == 0 || i > prompt.size()) {
      state->logprobs.AddUnpredicted(pieces[i]);
      continue;
    }
    // The distribution after position i - 1 is the one that token i was read from.
    ShownToken token;
    token.text = pieces[i];
    token.logprobs = prompt[i - 1];
    token.logprobs.token = options_.echo_tokens[which][i];
    state->logprobs.Add(token, *options_.tokenizer);
  }
  return text;
}

void CompletionWriter::AppendChunk(size_t index, std::string text, Json logprobs,
                                   Json finish_reason, std::string* out) const {
  Json chunk = HeadJson(options_.head);
  Json choice;
  choice["index"] = index;
  choice["text"] = std::move(text);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = std::move(finish_reason);
  chunk["choices"] = Json::array({std::move(choice)});
  if (options_.include_usage) chunk["usage"] = nullptr;
  AppendEvent(chunk, out);
}

Status CompletionWriter::Take(size_t index, GenerationEvent event, std::string* out) {
  State& state = states_[index];
  const bool ranked = options_.best_of > options_.n;
  const std::vector<PositionLogprobs> prompt = std::move(event.prompt);
  LOCKSTEP_ASSIGN_OR_RETURN(ChoiceDelta delta,
                            state.choice.Take(std::move(event), options_.logprobs >= 0 || ranked));
  std::string text;
  if (!options_.echo.empty() && !std::exchange(state.echoed, true)) {
    text = Echo(index, prompt, &state);
  }
  text += delta.text;
  if (options_.logprobs >= 0) {
    for (const ShownToken& token : delta.tokens) state.logprobs.Add(token, *options_.tokenizer);
  }
  if (!options_.stream) {
    state.text += text;
    return OkStatus();
  }
  if (!text.empty() || !state.logprobs.empty()) {
    Json logprobs;
    if (options_.logprobs >= 0) logprobs = state.logprobs.Take();
    AppendChunk(index, std::move(text), std::move(logprobs), nullptr, out);
  }
  if (delta.ended) AppendChunk(index, "", nullptr, state.choice.finish_reason(), out);
  return OkStatus();
}

std::vector<size_t> CompletionWriter::Chosen(size_t prompt) const {
  std::vector<size_t> order(static_cast<size_t>(options_.best_of));
  std::iota(order.begin(), order.end(), prompt * static_cast<size_t>(options_.best_of));
  if (options_.best_of > options_.n) {
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return states_[a].choice.mean_logprob() > states_[b].choice.mean_logprob();
    });
  }
  order.resize(static_cast<size_t>(options_.n));
  return order;
}

Usage CompletionWriter::TotalUsage() const {
  Usage total;
  for (size_t i = 0; i < states_.size(); ++i) {
    const Usage& usage = states_[i].choice.end().usage;
    total.completion_tokens += usage.completion_tokens;
    // A prompt counts once, however many choices answer it.
    if (i % static_cast<size_t>(options_.best_of) != 0) continue;
    total.prompt_tokens += usage.prompt_tokens;
    total.cached_tokens += usage.cached_tokens;
  }
  return total;
}

std::string CompletionWriter::End() {
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
  for (size_t prompt = 0; prompt < prompts_; ++prompt) {
    for (const size_t chosen : Chosen(prompt)) {
      State& state = states_[chosen];
      Json choice;
      choice["index"] = answer["choices"].size();
      choice["text"] = std::move(state.text);
      choice["logprobs"] = options_.logprobs >= 0 ? state.logprobs.Take() : Json();
      choice["finish_reason"] = state.choice.finish_reason();
      answer["choices"].push_back(std::move(choice));
    }
  }
  answer["usage"] = UsageJson(TotalUsage());
  return DumpJson(answer);
}

}  // namespace lockstep
