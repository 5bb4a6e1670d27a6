#include "simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/testing/memory_store.h"
#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using testing::Difference;
using testing::kVocabSize;
using testing::MemoryStore;
using testing::RecordingSink;
using testing::TestCore;

class Simulation {
 public:
  Simulation(uint64_t seed, SimulationCounts* counts) : random_(seed), counts_(counts) {}

  std::string Run();

 private:
  enum class Fate { kNone, kCancel, kDeadline, kClose, kThrow, kRowFault };
  struct Client {
    GenerationRequest request;  // without a sink
    int arrives = 0;            // before this turn
    Fate fate = Fate::kNone;
    int fate_at = 0;  // a turn (cancel, deadline), or a number of offers (close, throw)
    bool sluggish = false;
    RequestId id = 0;
    std::shared_ptr<RecordingSink> sink;
  };

  // What several prompts begin with, and when most of those come.
  struct Opening {
    std::vector<TokenId> tokens;
    int turn = 0;
  };

  // Uniform in [low, high].
  int Pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }

  void MakeConfiguration();
  Client MakeClient();
  void Arrive(TestCore* test, Client* client);
  void FillStore();
  void SpoilStore();
  void Turn(TestCore* test, int turn);
  std::string CheckInvariants(const TestCore& test) const;
  std::string CheckAnswer(const Client& client);
  GenerationEvent Alone(const Client& client);

  std::mt19937_64 random_;
  SimulationCounts* const counts_;
  FakeOptions fake_;
  EngineOptions options_;
  std::shared_ptr<MemoryStore> store_;  // null: prefixes are kept in the cache alone
  std::vector<Opening> openings_;
  int same_turn_percent_ = 0;
  int fault_percent_ = 0;
  int consecutive_faults_ = 0;
  std::vector<Client> clients_;
};

void Simulation::MakeConfiguration() {
  fake_.vocab_size = kVocabSize;
  fake_.max_context = Pick(20, 120);
  fake_.cache_groups.resize(static_cast<size_t>(Pick(1, 3)));
  if (Chance(40)) store_ = std::make_shared<MemoryStore>();
  int64_t smallest = 0;
  constexpr int32_t kSizes[] = {1, 2, 3, 4, 6, 12};
  for (CacheGroupSpec& group : fake_.cache_groups) {
    group = {Chance(40) ? CacheKind::kPaged : static_cast<CacheKind>(Pick(0, 3)),
             kSizes[Pick(0, 5)], Pick(1, 50), "fake"};
    if (group.kind == CacheKind::kWindow) {
      group.window = Pick(1, 30);
      group.sinks = Chance(50) ? 0 : Pick(1, 6);
    }
    if (store_ != nullptr) {
      group.block_bytes = 8 * (group.kind == CacheKind::kRecurrent ? 1 : group.block_tokens);
    }
    smallest += 2 * group.block_bytes;
  }
  options_ = TestCore::DefaultOptions();
  options_.max_rows = Pick(1, 8);
  options_.step_tokens = options_.max_rows + Pick(0, 30);
  options_.kv_bytes = smallest * Pick(8, 60);
  options_.prefix_store = store_;
  for (int i = Pick(1, 3); i > 0; --i) {
    openings_.push_back({testing::TestPrompt(Pick(1, 60), random_()), Pick(0, 40)});
  }
  if (Chance(70)) options_.chunk_cut = [this](int32_t want) { return Pick(1, want); };
  // The fake checks that no plan exceeds these.
  fake_.max_step_rows = options_.max_rows;
  fake_.max_step_tokens = options_.step_tokens;
  same_turn_percent_ = Chance(30) ? 80 : 0;
  fault_percent_ = Chance(50) ? Pick(1, 30) : 0;
}

Simulation::Client Simulation::MakeClient() {
  Client client;
  GenerationRequest& request = client.request;
  request = testing::TestRequest(Pick(1, 40), random_(), Chance(10) ? -1 : Pick(0, 25));
  const Opening& opening =
      openings_[static_cast<size_t>(Pick(0, static_cast<int>(openings_.size()) - 1))];
  if (Chance(60)) {
    const auto length = static_cast<int>(opening.tokens.size());
    const auto taken = Chance(70) ? length : Pick(1, length);
    request.prompt.insert(request.prompt.begin(), opening.tokens.begin(),
                          opening.tokens.begin() + taken);
    if (Chance(20)) request.prompt.resize(static_cast<size_t>(taken));
    if (Chance(30)) request.stable_tokens = taken;
  }
  if (Chance(10)) request.cache_salt = "salt";
  request.sampling.temperature = Chance(50) ? 0.0f : 1.0f;
  request.sampling.logprobs = Chance(70) ? -1 : Pick(0, 3);
  request.prompt_logprobs = Chance(80) ? -1 : Pick(0, 2);
  request.ignore_eos = Chance(50);
  request.skip_special_tokens = Chance(80);
  if (Chance(30)) request.stop = {"a", "bc.", "STOP"};
  if (Chance(20)) request.stop_token_ids = {Pick(0, kVocabSize - 1), Pick(0, kVocabSize - 1)};
  if (Chance(20)) request.min_tokens = Pick(0, std::max(0, request.max_tokens));
  client.arrives = Chance(same_turn_percent_) ? opening.turn : Pick(0, 40);
  client.sluggish = Chance(20);
  if (Chance(30)) {
    client.fate = static_cast<Fate>(Pick(1, 5));
    client.fate_at = client.fate == Fate::kClose || client.fate == Fate::kThrow
                         ? Pick(0, 6)
                         : client.arrives + Pick(0, 25);
  }
  return client;
}

void Simulation::Arrive(TestCore* test, Client* client) {
  GenerationRequest request = client->request;
  if (client->fate == Fate::kDeadline) {
    // A turn is a second.
    request.deadline =
        test->now + std::chrono::seconds(std::max(0, client->fate_at - client->arrives));
  }
  client->sink = test->Submit(std::move(request));
  client->id = test->last_id();
  RecordingSink* const sink = client->sink.get();
  sink->answer = [this, client, sink](int n) {
    if (client->fate == Fate::kClose && n == client->fate_at) return EventSink::Answer::kClosed;
    if (client->fate == Fate::kThrow && n == client->fate_at) throw std::runtime_error("sink");
    if (client->sluggish && Chance(30)) {
      ++counts_->pauses;
      sink->is_ready = false;
      return EventSink::Answer::kFull;
    }
    return EventSink::Answer::kReady;
  };
}

// What an engine before this one has left there.
void Simulation::FillStore() {
  FakeOptions fake = fake_;
  fake.max_step_tokens = 200;
  EngineOptions options = TestCore::DefaultOptions();
  options.kv_bytes = int64_t{1} << 20;
  options.prefix_store = store_;
  options.max_rows = options_.max_rows;
  TestCore test(fake, options);
  for (const Opening& opening : openings_) {
    GenerationRequest request;
    request.prompt = opening.tokens;
    request.prompt.resize(std::min<size_t>(request.prompt.size(), fake.max_context - 1));
    request.max_tokens = 1;
    test.Submit(std::move(request));
  }
  while (!test.core->idle()) test.RunUntilIdle();
}

// Slow, full, and losing things.
void Simulation::SpoilStore() {
  store_->has_room = Chance(70);
  store_->readable = Pick(0, 4);
  if (store_->entries.empty() || !Chance(10)) return;
  const auto at =
      std::next(store_->entries.begin(), Pick(0, static_cast<int>(store_->entries.size()) - 1));
  if (Chance(50)) {
    store_->entries.erase(at);
  } else {
    at->second.clear();
  }
}

void Simulation::Turn(TestCore* test, int turn) {
  if (store_ != nullptr) SpoilStore();
  test->now += std::chrono::seconds(1);
  for (Client& client : clients_) {
    if (!client.sink && client.arrives <= turn) Arrive(test, &client);
    if (!client.sink) continue;
    if (client.fate == Fate::kCancel && client.fate_at == turn) test->core->Cancel(client.id);
    if (!client.sink->is_ready && Chance(40)) client.sink->is_ready = true;
  }
  test->core->RunOneStep();
}

std::string Simulation::CheckInvariants(const TestCore& test) const {
  const Status status = test.core->kv().CheckIntegrity();
  if (!status.ok()) return status.ToString();
  const EngineStats stats = test.core->stats();
  if (stats.kv_bytes_budget > options_.kv_bytes) return "the pools exceed the budget";
  if (stats.kv_bytes_reserved > stats.kv_bytes_budget) return "reservations exceed the budget";
  if (stats.kv_bytes_used > stats.kv_bytes_reserved) return "more is used than reserved";
  if (stats.running > options_.max_rows) return "too many rows run";
  if (!test.core->healthy()) return "the core died";
  return "";
}

GenerationEvent Simulation::Alone(const Client& client) {
  FakeOptions fake = fake_;
  fake.before_step = {};
  fake.row_status = {};
  EngineOptions options = options_;
  options.chunk_cut = {};
  options.prefix_cache = false;
  TestCore test(fake, options);
  const auto sink = test.Submit(client.request);
  test.RunUntilIdle();
  return sink->merged;
}

std::string Simulation::CheckAnswer(const Client& client) {
  const GenerationEvent& got = client.sink->merged;
  if (got.end) {
    const Usage& usage = got.end->usage;
    if (usage.cached_tokens < 0 || usage.cached_tokens >= usage.prompt_tokens) {
      return "a prompt's last token cannot come from the cache";
    }
    if (client.request.prompt_logprobs >= 0 && usage.cached_tokens != 0) {
      return "log-probabilities of a prompt that was not computed";
    }
  }
  const GenerationEvent want = Alone(client);
  const bool gone = client.fate == Fate::kClose || client.fate == Fate::kThrow;
  if (!got.end && !gone) return "a request has no end";
  if (got.end && got.end->reason != FinishReason::kCancelled &&
      got.end->reason != FinishReason::kError) {
    ++counts_->finished;
    return Difference(got, want);
  }
  // Broken off: what was sent is the beginning of the whole answer.
  ++(got.end && got.end->reason == FinishReason::kError ? counts_->failed : counts_->cancelled);
  if (client.fate == Fate::kNone) return "a request was broken off without a reason";
  GenerationEvent part = want;
  if (got.tokens.size() > want.tokens.size()) return "more tokens than alone";
  part.tokens.resize(got.tokens.size());
  part.text = got.text;  // the end of it may differ: what was held back is given out
  part.end = got.end;
  part.prompt = got.prompt;
  return Difference(got, part);
}

std::string Simulation::Run() {
  MakeConfiguration();
  const int wanted = Pick(1, 25);
  FakeOptions fake = fake_;
  fake.before_step = [this](int64_t, const StepInput&) {
    if (!Chance(fault_percent_) || consecutive_faults_ + 1 >= EngineCore::kMaxStepAttempts) {
      consecutive_faults_ = 0;
      return OkStatus();
    }
    ++consecutive_faults_;
    ++counts_->failed_steps;
    if (Chance(50)) throw std::runtime_error("step");
    return Internal("step");
  };
  fake.row_status = [this](int64_t, const StepRow& row) {
    for (const Client& client : clients_) {
      // A request's seed is its own.
      if (client.fate == Fate::kRowFault && row.sampling != nullptr &&
          row.sampling->seed == client.request.sampling.seed &&
          static_cast<int32_t>(row.sequence.size()) - row.prompt_tokens == client.fate_at % 4) {
        return Internal("not a number");
      }
    }
    return OkStatus();
  };
  if (store_ != nullptr) FillStore();
  TestCore test(fake, options_);
  while (static_cast<int>(clients_.size()) < wanted) {
    Client client = MakeClient();
    // What can never fit is refused at submit; only what is taken takes part.
    if (CheckRequest(client.request, test.core->limits()).ok()) {
      clients_.push_back(std::move(client));
    }
  }
  // Enough for every token to take a turn of its own, with pauses and failures.
  constexpr int kTurns = 20000;
  for (int turn = 0; turn < kTurns; ++turn) {
    Turn(&test, turn);
    if (const std::string problem = CheckInvariants(test); !problem.empty()) return problem;
    if (turn > 40 && test.core->idle()) break;
  }
  if (!test.core->idle()) return "starved: requests are left over";
  counts_->requests += wanted;
  if (test.core->kv().used_bytes() != 0) return "blocks have leaked";
  if (test.core->kv().reserved_bytes() != 0) return "reservations have leaked";
  for (const Client& client : clients_) {
    if (const std::string problem = CheckAnswer(client); !problem.empty()) {
      return fmt::format("request {}: {}", client.id, problem);
    }
  }
  const EngineStats stats = test.core->stats();
  counts_->cached_tokens += static_cast<int64_t>(stats.cached_tokens);
  counts_->restored_tokens += static_cast<int64_t>(stats.prefix_transfer.tokens);
  counts_->failed_restores += static_cast<int64_t>(stats.prefix_transfer.failures);
  counts_->evictions += static_cast<int64_t>(stats.prefix_evictions);
  if (stats.finished_stop + stats.finished_length + stats.finished_cancelled +
          stats.finished_error !=
      static_cast<uint64_t>(wanted)) {
    return "the ends do not add up";
  }
  return "";
}

}  // namespace

std::string Simulate(uint64_t seed, SimulationCounts* counts) {
  return Simulation(seed, counts).Run();
}

}  // namespace lockstep
