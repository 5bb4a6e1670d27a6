#include "apps/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>
#include <vector>

#include "apps/verify/mixed_requests.h"
#include "apps/verify/serve_requests.h"

namespace lockstep {
namespace {

using Requests = std::vector<GenerationRequest>;
using Answers = std::vector<ServedAnswer>;

constexpr int32_t kPrompt = 400;
constexpr int32_t kAnswer = 24;  // MixedRequests' longest

// How the engine cuts prompts; changed between variations.
enum class Cut { kNone, kRandom, kSingle };

// Long enough to leave the model's windows behind.
int32_t LongestPrompt(const ExecutorInfo& info) {
  int32_t longest = kPrompt;
  for (const CacheGroupSpec& group : info.cache_groups) {
    if (group.kind == CacheKind::kWindow) longest = std::max(longest, group.window + kPrompt / 4);
  }
  return std::max(1, std::min(longest, info.max_context - kAnswer));
}

Requests MakeRequests(const VerifyOptions& options, const ExecutorInfo& info) {
  const int32_t longest = LongestPrompt(info);
  Requests requests = MixedRequests(options.requests, info.vocab_size, longest, options.seed);
  // One of full length at least.
  std::mt19937_64 random(options.seed);
  std::vector<TokenId>& prompt = requests.front().prompt;
  while (static_cast<int32_t>(prompt.size()) < longest) {
    prompt.push_back(static_cast<TokenId>(random() % static_cast<uint64_t>(info.vocab_size)));
  }
  return requests;
}

// Nothing that was computed under another salt is taken over.
Requests Salted(Requests requests, const std::string& salt) {
  for (size_t i = 0; i < requests.size(); ++i) requests[i].cache_salt = salt;
  return requests;
}

Requests EachSalted(Requests requests, const std::string& salt) {
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].cache_salt = fmt::format("{} {}", salt, i);
  }
  return requests;
}

// Before each request one that begins like it, up to a random place, and then turns off.
Requests WithBeginnings(const Requests& requests, const ExecutorInfo& info, uint64_t seed) {
  std::mt19937_64 random(seed);
  Requests out;
  for (const GenerationRequest& request : requests) {
    GenerationRequest before;
    before.prompt = request.prompt;
    before.prompt.resize(1 + random() % request.prompt.size());
    before.prompt.back() = static_cast<TokenId>(random() % static_cast<uint64_t>(info.vocab_size));
    before.max_tokens = 1;
    before.cache_salt = request.cache_salt;
    out.push_back(std::move(before));
    out.push_back(request);
  }
  return out;
}

Answers EverySecond(Answers answers) {
  Answers out;
  for (size_t i = 1; i < answers.size(); i += 2) out.push_back(std::move(answers[i]));
  return out;
}

class Verifier {
 public:
  Verifier(const EngineFactory& make_engine, const VerifyOptions& options,
           const std::function<void(const Variation&)>& report)
      : make_engine_(make_engine), options_(options), report_(report) {}

  Result<bool> Run() {
    LOCKSTEP_RETURN_IF_ERROR(WithThreads(1));
    if (options_.threads > 1) LOCKSTEP_RETURN_IF_ERROR(WithThreads(options_.threads));
    return same_;
  }

 private:
  Status WithThreads(int32_t threads) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::unique_ptr<Engine> engine,
        make_engine_(threads,
                     [this, random = std::mt19937_64(options_.seed)](int32_t want) mutable {
                       if (cut_ == Cut::kNone) return want;
                       if (cut_ == Cut::kSingle) return 1;
                       return 1 + static_cast<int32_t>(random() % static_cast<uint64_t>(want));
                     }));
    if (requests_.empty()) requests_ = MakeRequests(options_, engine->info());
    threads_ = threads;

    cut_ = Cut::kNone;
    LOCKSTEP_RETURN_IF_ERROR(Compare("alone", InTurn(*engine, "alone")));
    if (threads == 1) LOCKSTEP_RETURN_IF_ERROR(Compare("alone, again", InTurn(*engine, "again")));
    LOCKSTEP_RETURN_IF_ERROR(Compare("together", Together(*engine, "together", 0)));
    cut_ = Cut::kRandom;
    LOCKSTEP_RETURN_IF_ERROR(
        Compare("together, in another order, prompts cut anywhere", Together(*engine, "cut", 1)));
    cut_ = Cut::kSingle;
    LOCKSTEP_RETURN_IF_ERROR(
        Compare("together, prompts cut to single tokens", Together(*engine, "single", 2)));
    cut_ = Cut::kNone;
    return Compare("alone, after a cached beginning", AfterBeginnings(*engine));
  }

  Result<Answers> InTurn(Engine& engine, const std::string& salt) {
    return ServeInTurn(engine, EachSalted(requests_, salt));
  }
  Result<Answers> Together(Engine& engine, const std::string& salt, uint64_t order) {
    return ServeTogether(engine, Salted(requests_, salt), order);
  }
  Result<Answers> AfterBeginnings(Engine& engine) {
    const Requests salted = EachSalted(requests_, "beginning");
    LOCKSTEP_ASSIGN_OR_RETURN(
        Answers answers, ServeInTurn(engine, WithBeginnings(salted, engine.info(), options_.seed)));
    return EverySecond(std::move(answers));
  }

  Status Compare(const std::string& name, Result<Answers> served) {
    if (!served.ok()) return served.status().WithContext(name);
    if (expected_.empty()) expected_ = *served;
    Variation variation;
    variation.name = name;
    variation.threads = threads_;
    variation.answers = static_cast<int32_t>(served->size());
    for (size_t i = 0; i < served->size(); ++i) {
      const ServedAnswer& answer = (*served)[i];
      variation.tokens += static_cast<int64_t>(answer.tokens.size());
      variation.cached_tokens += answer.cached_tokens;
      if (answer.bytes == expected_[i].bytes) continue;
      if (variation.different++ == 0) variation.first = Where(i, answer);
    }
    same_ &= variation.different == 0;
    report_(variation);
    return OkStatus();
  }

  std::string Where(size_t i, const ServedAnswer& answer) const {
    const std::vector<TokenId>& expected = expected_[i].tokens;
    const auto [at, unused] =
        std::mismatch(expected.begin(), expected.end(), answer.tokens.begin(), answer.tokens.end());
    if (at == expected.end() && answer.tokens.size() == expected.size()) {
      return fmt::format("answer {}: the same tokens, other log-probabilities or text", i);
    }
    return fmt::format("answer {}: other tokens from token {} on", i, at - expected.begin());
  }

  const EngineFactory& make_engine_;
  const VerifyOptions& options_;
  const std::function<void(const Variation&)>& report_;
  std::atomic<Cut> cut_{Cut::kNone};
  Requests requests_;
  Answers expected_;
  int32_t threads_ = 1;
  bool same_ = true;
};

}  // namespace

Result<bool> Verify(const EngineFactory& make_engine, const VerifyOptions& options,
                    const std::function<void(const Variation&)>& report) {
  return Verifier(make_engine, options, report).Run();
}

}  // namespace lockstep
