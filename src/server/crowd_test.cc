// Many clients on one engine, counted in steps: none is starved, and one that leaves in the middle
// of its prompt gives its row back.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/testing/raw_client.h"
#include "server/testing/stack.h"

namespace lockstep {
namespace {

using testing::Eventually;
using testing::Get;
using testing::Joined;
using testing::ModelOptions;
using testing::Post;
using testing::RawClient;
using testing::Stack;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr int kClients = 32;

// A prompt begins with its client's letter.
char LetterOf(int client) { return static_cast<char>('0' + client); }

std::string BodyOf(int client) {
  const std::string prompt = LetterOf(client) + std::string(client % 4 == 0 ? 150 : client, 'x');
  return R"({"stream":true,"ignore_eos":true,"logprobs":2,"prompt":")" + prompt + R"(","seed":)" +
         std::to_string(client) + R"(,"temperature":)" + std::to_string(client % 3) +
         R"(,"max_tokens":)" + std::to_string(90 + client % 3 * 30) + "}";
}

// Which clients were given a token, step by step.
class Tokens {
 public:
  void Note(const StepInput& input) {
    std::vector<int> clients;
    for (const StepRow& row : input.rows) {
      if (row.sampling != nullptr) clients.push_back(row.sequence[0] - LetterOf(0));
    }
    const std::lock_guard lock(mutex_);
    steps_.push_back(std::move(clients));
  }
  std::vector<std::vector<int>> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(steps_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<int>> steps_;
};

TEST(Crowd, EveryStreamGetsATokenAtEveryStep) {
  Tokens tokens;
  std::atomic<bool> hold{false};
  std::promise<void> open;
  const auto opened = open.get_future().share();
  ModelOptions options;
  options.fake.max_context = 512;
  options.fake.max_step_rows = kClients;
  options.engine.max_rows = kClients;
  options.fake.before_step = [&, opened](int64_t, const StepInput& input) {
    if (hold) opened.wait_for(kPatience);
    tokens.Note(input);
    return OkStatus();
  };
  ServerOptions server;
  server.sink_events = 1024;  // nobody pauses: a pause is the client's doing, not the scheduler's
  Stack stack(options, server);
  std::vector<std::string> alone;
  for (int i = 0; i < kClients; ++i) {
    alone.push_back(Joined(Post(stack.port(), "/v1/completions", BodyOf(i))));
  }
  ASSERT_TRUE(Eventually([&] { return stack.model.engine->stats().running == 0; }));
  static_cast<void>(tokens.Take());

  hold = true;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<RawClient>(stack.port()));
    clients.back()->SendPost("/v1/completions", BodyOf(i));
  }
  // A stream's head goes out when the engine has taken its request.
  for (const auto& client : clients) ASSERT_TRUE(client->Await("200 OK"));
  open.set_value();
  for (int i = 0; i < kClients; ++i) EXPECT_EQ(Joined(clients[i]->Read()), alone[i]) << i;

  const auto steps = tokens.Take();
  std::vector<std::vector<size_t>> steps_of(kClients);
  size_t most_at_once = 0;
  for (size_t step = 0; step < steps.size(); ++step) {
    most_at_once = std::max(most_at_once, steps[step].size());
    for (const int client : steps[step]) steps_of[client].push_back(step);
  }
  EXPECT_EQ(most_at_once, static_cast<size_t>(kClients));
  // From its first token to its last no client misses a step: of two that run at the same time,
  // neither gets ahead of the other.
  for (int i = 0; i < kClients; ++i) {
    const std::vector<size_t>& mine = steps_of[i];
    ASSERT_EQ(mine.size(), static_cast<size_t>(90 + i % 3 * 30)) << i;
    EXPECT_EQ(mine.back() - mine.front() + 1, mine.size()) << i;
  }
}

TEST(Cases, C14_AClientThatLeavesBetweenPromptChunksFreesItsRow) {
  constexpr int kChunk = 64;
  constexpr int kPrompt = 3000;
  ModelOptions options;
  options.fake.max_context = 4000;
  options.engine.step_tokens = kChunk;
  std::atomic<int64_t> steps{0};
  std::promise<void> closed;
  const auto wait_for_close = closed.get_future().share();
  options.fake.before_step = [&steps, wait_for_close](int64_t n, const StepInput&) {
    steps = n + 1;
    if (n == 2) wait_for_close.wait_for(kPatience);
    return OkStatus();
  };
  Stack stack(options);
  RawClient client(stack.port());
  client.SendPost("/v1/completions",
                  R"({"stream":true,"prompt":")" + std::string(kPrompt, 'x') + "\"}");
  ASSERT_TRUE(Eventually([&] { return steps == 3; }));
  client.Reset();
  ASSERT_TRUE(Eventually([&] {
    return Get(stack.port(), "/metrics").body.find("lockstep_http_disconnects_total 1") !=
           std::string::npos;
  }));
  closed.set_value();
  ASSERT_TRUE(Eventually([&] { return stack.model.engine->stats().running == 0; }));
  // The step that was under way was its last.
  EXPECT_EQ(steps, 3);
  const EngineStats stats = stack.model.engine->stats();
  EXPECT_EQ(stats.finished_cancelled, 1u);
  EXPECT_EQ(stats.prompt_tokens, 3u * kChunk);
  EXPECT_EQ(stats.generated_tokens, 0u);
  EXPECT_EQ(stats.kv_bytes_used, 0);
  EXPECT_EQ(stats.kv_bytes_reserved, 0);
}

}  // namespace
}  // namespace lockstep
