#include "engine/output_processor.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

std::vector<TokenId> Sorted(std::vector<TokenId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<TokenId> Union(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  std::vector<TokenId> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return Sorted(std::move(both));
}

bool Contains(const std::vector<TokenId>& sorted, TokenId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

}  // namespace

OutputProcessor::OutputProcessor(const GenerationRequest& request, int32_t max_tokens,
                                 std::shared_ptr<const Tokenizer> tokenizer,
                                 const std::vector<TokenId>& eos_ids)
    : tokenizer_(std::move(tokenizer)),
      // The answer goes on after the prompt, so that its first space is its own.
      detokenizer_(tokenizer_, {.skip_special = request.skip_special_tokens, .continuation = true}),
      matcher_(request.stop),
      eos_ids_(request.ignore_eos && request.grammar == nullptr ? std::vector<TokenId>()
                                                                : Sorted(eos_ids)),
      stop_ids_(Sorted(request.stop_token_ids)),
      banned_(Union(eos_ids_, stop_ids_)),
      min_tokens_(request.min_tokens),
      max_tokens_(max_tokens),
      skip_special_(request.skip_special_tokens) {
  usage_.prompt_tokens = static_cast<int32_t>(request.prompt.size());
}

std::span<const TokenId> OutputProcessor::banned() const {
  if (usage_.completion_tokens >= min_tokens_) return {};
  return banned_;
}

void OutputProcessor::Push(TokenId id, PositionLogprobs logprobs, GenerationEvent* event,
                           bool complete) {
  ++usage_.completion_tokens;
  const bool is_eos = Contains(eos_ids_, id);
  if (is_eos || Contains(stop_ids_, id)) {
    End(FinishReason::kStop, event);
    if (!is_eos) event->end->stop_token = id;
    return;
  }
  TokenEvent token;
  token.id = id;
  if (!skip_special_ || !tokenizer_->IsSpecial(id)) token.bytes = tokenizer_->TokenBytes(id);
  token.logprobs = std::move(logprobs);
  event->tokens.push_back(std::move(token));

  PushText(detokenizer_.Push(id), event);
  if (matcher_.matched() || complete) {
    End(FinishReason::kStop, event);
  } else if (usage_.completion_tokens >= max_tokens_) {
    End(FinishReason::kLength, event);
  }
}

void OutputProcessor::Finish(FinishReason reason, Status status, GenerationEvent* event) {
  End(reason, event);
  // A stop string that only the last character completed does not hide why the engine ended it.
  event->end->reason = reason;
  event->end->stop.clear();
  event->end->status = std::move(status);
}

void OutputProcessor::Abandon(FinishReason reason, Status status, GenerationEvent* event) const {
  GenerationEnd& end = event->end.emplace();
  end.reason = reason;
  end.status = std::move(status);
  end.usage = usage_;
}

void OutputProcessor::PushText(const std::string& piece, GenerationEvent* event) {
  if (usage_.completion_tokens <= min_tokens_) {
    event->text += piece;
  } else {
    event->text += matcher_.Push(piece);
  }
}

void OutputProcessor::End(FinishReason reason, GenerationEvent* event) {
  if (!matcher_.matched()) {
    PushText(detokenizer_.Finish(), event);
    event->text += matcher_.Finish();
  }
  GenerationEnd& end = event->end.emplace();
  end.reason = reason;
  if (matcher_.matched()) {
    end.reason = FinishReason::kStop;
    end.stop = matcher_.matched_string();
  }
  end.usage = usage_;
}

}  // namespace lockstep
