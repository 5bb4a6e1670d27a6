#include "api/choice.h"

#include <utility>

namespace lockstep {

Result<ChoiceDelta> Choice::Take(GenerationEvent event, bool want_tokens) {
  ChoiceDelta delta;
  text_bytes_ += event.text.size();
  delta.text = std::move(event.text);
  if (want_tokens) {
    for (TokenEvent& token : event.tokens) {
      sum_ += token.logprobs.logprob;
      ++count_;
      trail_.Push(std::move(token));
    }
    delta.tokens = event.end ? trail_.Finish(text_bytes_, !event.end->stop.empty())
                             : trail_.Release(text_bytes_);
  }
  if (!event.end) return delta;
  end_ = std::move(event.end);
  delta.ended = true;
  if (end_->reason == FinishReason::kStop || end_->reason == FinishReason::kLength) return delta;
  if (!end_->status.ok()) return end_->status;
  if (end_->reason == FinishReason::kCancelled) return Cancelled("the request was cancelled");
  return Internal("the request failed");
}

const char* Choice::finish_reason() const {
  return end_->reason == FinishReason::kLength ? "length" : "stop";
}

Json HeadJson(const AnswerHead& head) {
  Json json;
  json["id"] = head.id;
  json["object"] = head.object;
  json["created"] = head.created;
  json["model"] = head.model;
  json["system_fingerprint"] = head.fingerprint;
  return json;
}

Json UsageJson(const Usage& usage) {
  Json json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["prompt_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  return json;
}

}  // namespace lockstep
