#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/testing/testing.h"
#include "server/testing/raw_client.h"
#include "server/testing/stack.h"

namespace lockstep {
namespace {

using testing::Bytes;
using testing::Eventually;
using testing::Get;
using testing::Joined;
using testing::ModelOptions;
using testing::Post;
using testing::RawClient;
using testing::RawResponse;
using testing::Stack;

constexpr auto kPatience = std::chrono::seconds(60);

TEST(Cases, C14_AClientThatLeavesFreesItsRow) {
  for (const bool stream : {false, true}) {
    for (const bool reset : {false, true}) {
      ModelOptions options;
      options.fake.max_context = 4000;
      std::atomic<int64_t> steps{0};
      std::promise<void> closed;
      const auto wait_for_close = closed.get_future().share();
      // The fourth step waits until the client has left: the row must not live on for long.
      options.fake.before_step = [&steps, wait_for_close](int64_t n, const StepInput&) {
        steps = n;
        if (n == 3) wait_for_close.wait_for(kPatience);
        return OkStatus();
      };
      Stack stack(options);
      RawClient client(stack.port());
      client.SendPost("/v1/completions",
                      std::string(R"({"prompt":"a","ignore_eos":true,"stream":)") +
                          (stream ? "true}" : "false}"));
      ASSERT_TRUE(Eventually([&] { return steps == 3; }));
      reset ? client.Reset() : client.Close();
      ASSERT_TRUE(Eventually([&] {
        return Get(stack.port(), "/metrics").body.find("lockstep_http_disconnects_total 1") !=
               std::string::npos;
      }));
      closed.set_value();
      EXPECT_TRUE(Eventually([&] { return stack.model.engine->stats().running == 0; }));
      EXPECT_EQ(stack.model.engine->stats().finished_cancelled, 1u);
      EXPECT_EQ(stack.model.engine->stats().kv_bytes_used, 0);
      EXPECT_LE(steps, 5);
    }
  }
}

// As a pipe into nc does: it ends its side once the request is out, and reads on.
TEST(Generation, AClientThatOnlyEndsItsSideIsServed) {
  for (const bool stream : {false, true}) {
    for (const bool http_1_0 : {false, true}) {
      if (http_1_0 && !stream) continue;
      ModelOptions options;
      options.script = Bytes("served");
      std::promise<void> open;
      const auto opened = open.get_future().share();
      options.fake.before_step = [opened](int64_t n, const StepInput&) {
        if (n == 2) opened.wait_for(kPatience);
        return OkStatus();
      };
      Stack stack(options);
      RawClient client(stack.port());
      const std::string body =
          std::string(R"({"prompt":"a","stream":)") + (stream ? "true}" : "false}");
      client.Send("POST /v1/completions HTTP/1." + std::string(http_1_0 ? "0" : "1") +
                  "\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                  body);
      client.CloseWrite();
      // The question whether it listens comes while the row runs.
      EXPECT_TRUE(client.ReadUntil(stream ? ": keep-alive" : "100 Continue\r\n\r\n"));
      open.set_value();
      if (stream) {
        EXPECT_TRUE(client.ReadUntil("[DONE]"));
      } else {
        const RawResponse response = client.Read();
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.headers.at("connection"), "close");
        EXPECT_EQ(Json::parse(response.body)["choices"][0]["text"], "served");
      }
      EXPECT_TRUE(Eventually([&] { return stack.model.engine->stats().finished_stop == 1; }));
      EXPECT_EQ(stack.model.engine->stats().finished_cancelled, 0u);
    }
  }
}

TEST(Generation, PipelinedRequestsOfAHalfClosedClientAreAllServed) {
  ModelOptions options;
  options.script = Bytes("ok");
  Stack stack(options);
  RawClient client(stack.port());
  for (int i = 0; i < 3; ++i) client.SendPost("/v1/completions", R"({"prompt":"a"})");
  client.CloseWrite();
  for (int i = 0; i < 3; ++i) {
    RawResponse response = client.Read();
    while (response.status == 100) response = client.Read();
    EXPECT_EQ(response.status, 200);
  }
  EXPECT_TRUE(client.AtEnd());
}

TEST(Cases, C53_AFaultAfterTheFirstByteIsOneErrorEvent) {
  ModelOptions options;
  options.fake.row_status = [](int64_t n, const StepRow&) {
    return n >= 3 ? Internal("the row broke") : OkStatus();
  };
  Stack stack(options);
  RawClient client(stack.port());
  client.SendPost("/v1/completions", R"({"prompt":"a","stream":true,"ignore_eos":true})");
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 200);
  ASSERT_FALSE(response.events.empty());
  const Json last = Json::parse(response.events.back());
  EXPECT_EQ(last["error"]["message"], "the row broke");
  EXPECT_EQ(response.body.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(client.AtEnd());
  // Not streaming, it is a plain error.
  EXPECT_EQ(Post(stack.port(), "/v1/completions", R"({"prompt":"a","ignore_eos":true})").status,
            500);
}

TEST(Cases, C53_AStreamThatEndsLeavesTheConnectionUsable) {
  ModelOptions options;
  options.script = Bytes("ok");
  Stack stack(options);
  RawClient client(stack.port());
  for (int i = 0; i < 3; ++i) {
    client.SendPost("/v1/completions", R"({"prompt":"a","stream":true})");
    EXPECT_EQ(Joined(client.Read()), "ok");
  }
  client.SendPost("/v1/completions", R"({"prompt":"a","stream":true,"n":0})");
  EXPECT_EQ(client.Read().status, 400);
  client.SendGet("/health");
  EXPECT_EQ(client.Read().status, 200);
}

TEST(Cases, C68_HeadersAtOnceAndCommentsInTheSilence) {
  std::promise<void> open;
  const auto opened = open.get_future().share();
  ModelOptions options;
  options.script = Bytes("ok");
  options.fake.before_step = [opened](int64_t, const StepInput&) {
    opened.wait_for(kPatience);
    return OkStatus();
  };
  ServerOptions server;
  server.keep_alive_interval = std::chrono::milliseconds(5);
  Stack stack(options, server);
  RawClient client(stack.port());
  client.SendPost("/v1/chat/completions",
                  R"({"messages":[{"role":"user","content":"x"}],"stream":true})");
  EXPECT_TRUE(client.ReadUntil("200 OK"));
  EXPECT_TRUE(client.ReadUntil(R"("role":"assistant")"));
  EXPECT_TRUE(client.ReadUntil(": keep-alive\n\n"));
  EXPECT_TRUE(client.ReadUntil(": keep-alive\n\n"));
  open.set_value();
  EXPECT_TRUE(client.ReadUntil("[DONE]"));
}

// One worker: what it does for clients that left would hold up everybody.
TEST(Generation, NothingIsTokenisedForClientsThatLeft) {
  ServerOptions server;
  server.worker_threads = 1;
  Stack stack({}, server);
  const std::string large = R"({"prompt":")" + std::string(size_t{1} << 17, ' ') + "\"}";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Post(stack.port(), "/tokenize", large).status, 200);
  const auto one = std::chrono::steady_clock::now() - start;

  RawClient first(stack.port());
  first.SendPost("/tokenize", large);
  constexpr int kLeaving = 40;
  for (int i = 0; i < kLeaving; ++i) {
    RawClient leaving(stack.port());
    leaving.SendPost("/tokenize", large);
    leaving.Reset();
  }
  const auto left = std::chrono::steady_clock::now();
  EXPECT_EQ(Post(stack.port(), "/v1/completions", R"({"prompt":"a","max_tokens":1})").status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - left, one * (kLeaving / 2));
  EXPECT_EQ(first.Read().status, 200);
}

TEST(Generation, AFullQueueIs429) {
  std::promise<void> open;
  const auto opened = open.get_future().share();
  ModelOptions options;
  options.engine.max_rows = 1;
  options.engine.max_queue = 1;
  options.fake.before_step = [opened](int64_t, const StepInput&) {
    opened.wait_for(kPatience);
    return OkStatus();
  };
  Stack stack(options);
  // More than can run and wait together, in one request: none is left behind.
  const RawResponse refused =
      Post(stack.port(), "/v1/completions", R"({"prompt":"a","n":8,"max_tokens":2})");
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  open.set_value();
  EXPECT_TRUE(Eventually([&] {
    const EngineStats stats = stack.model.engine->stats();
    return stats.running == 0 && stats.waiting == 0;
  }));
  EXPECT_EQ(Post(stack.port(), "/v1/completions", R"({"prompt":"a","max_tokens":2})").status, 200);
}

TEST(Generation, AClientThatDoesNotReadHoldsUpNobody) {
  ModelOptions options;
  options.fake.max_context = 1000;
  options.engine.kv_bytes = 8 << 20;
  ServerOptions server;
  server.sink_events = 4;
  server.send_buffer_bytes = 4096;
  Stack stack(options, server);
  const std::string big =
      R"({"prompt":"a","stream":true,"ignore_eos":true,"seed":1,"logprobs":20,"max_tokens":900})";
  const std::string small = R"("prompt":"b","max_tokens":250,"seed":3,"ignore_eos":true)";
  const std::string alone = Joined(Post(stack.port(), "/v1/completions", big));
  RawClient slow(stack.port(), 4096);
  slow.SendPost("/v1/completions", big);
  std::vector<std::unique_ptr<RawClient>> vanishing;
  for (int i = 0; i < 10; ++i) {
    vanishing.push_back(std::make_unique<RawClient>(stack.port()));
    vanishing.back()->SendPost("/v1/completions", big);
  }
  const Json first = stack.Complete(small);
  for (int i = 0; i < 10; ++i) i % 2 == 0 ? vanishing[i]->Reset() : vanishing[i]->Close();
  // Together more steps than the slow one's answer has tokens: it would be over had it not paused.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stack.Complete(small)["choices"], first["choices"]);
  EXPECT_TRUE(Eventually([&] { return stack.model.engine->stats().running == 1; }));
  EXPECT_EQ(stack.model.engine->stats().finished_cancelled, 10u);
  // It reads after all, and misses nothing.
  EXPECT_EQ(Joined(slow.Read()), alone);
}

TEST(Generation, AnHttp10ClientGetsItsStreamUnchunked) {
  ModelOptions options;
  options.script = Bytes("ok");
  Stack stack(options);
  RawClient client(stack.port());
  const std::string body = R"({"prompt":"a","stream":true})";
  client.Send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const RawResponse response = client.Read();
  EXPECT_FALSE(response.headers.contains("transfer-encoding"));
  EXPECT_EQ(Joined(response), "ok");
}

TEST(Generation, PipelinedGenerationsAreAnsweredInOrder) {
  ModelOptions options;
  options.script = Bytes("ok");
  Stack stack(options);
  RawClient client(stack.port());
  for (int i = 0; i < 5; ++i) {
    client.SendPost("/v1/completions",
                    R"({"prompt":"a","max_tokens":)" + std::to_string(i % 2 + 1) + "}");
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Json::parse(client.Read().body)["choices"][0]["text"], i % 2 == 0 ? "o" : "ok");
  }
}

}  // namespace
}  // namespace lockstep
