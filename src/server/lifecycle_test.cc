#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "api/json.h"
#include "api/testing/testing.h"
#include "server/testing/raw_client.h"
#include "server/testing/running_server.h"

namespace lockstep {
namespace {

using std::chrono::steady_clock;
using testing::Bytes;
using testing::Eventually;
using testing::Get;
using testing::ModelOptions;
using testing::Post;
using testing::RawClient;
using testing::RunningServer;
using testing::TestModel;

constexpr auto kLong = std::chrono::seconds(60);

// A fake executor's hook that lets no step go on until it is opened, or patience ends.
struct Gate {
  std::function<Status(int64_t, const StepInput&)> Hook() {
    return [this, opened = opened](int64_t, const StepInput&) {
      entered = true;
      opened.wait_for(kLong);
      return OkStatus();
    };
  }

  std::atomic<bool> entered{false};  // a step has begun
  std::promise<void> open;
  std::shared_future<void> opened{open.get_future()};
};

TEST(Cases, C65_ATakenPortFailsAtOnceNamingIt) {
  RunningServer first;
  ServerOptions options;
  options.port = first.port();
  const auto second = Server::Bind(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(second.status().message().find(std::to_string(first.port())), std::string::npos);
  EXPECT_EQ(second.status().param(), "port");
}

TEST(Lifecycle, ABadHostIsNamed) {
  ServerOptions options;
  options.host = "no.such.host.invalid";
  const auto server = Server::Bind(options);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.status().message().find("no.such.host.invalid"), std::string::npos);
}

TEST(Cases, C67_HealthFollowsTheModel) {
  RunningServer running;
  EXPECT_EQ(Get(running.port(), "/health").status, 503);
  EXPECT_EQ(Get(running.port(), "/v1/models").status, 503);
  EXPECT_EQ(Post(running.port(), "/v1/completions", R"({"prompt":"a"})").status, 503);
  EXPECT_EQ(Get(running.port(), "/metrics").status, 200);
  TestModel model;
  running.server->SetModel(model.served);
  const auto health = Get(running.port(), "/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.body, R"({"status":"ok"})");
  const Json models = Json::parse(Get(running.port(), "/v1/models").body);
  EXPECT_EQ(models["data"][0]["id"], "test-model");
  EXPECT_EQ(models["data"][1]["id"], "test-alias");
  EXPECT_EQ(Get(running.port(), "/v1/models/test-model").status, 200);
  EXPECT_EQ(Get(running.port(), "/v1/models/none").status, 404);
  EXPECT_EQ(Get(running.port(), "/version").body, R"({"version":"0.0.0"})");
  running.server->Stop(steady_clock::now());
}

TEST(Cases, C67_HealthAnswersWhileTheEngineIsBusy) {
  Gate gate;
  ModelOptions options;
  options.fake.before_step = gate.Hook();
  TestModel model(options);
  RunningServer running(model.served);
  RawClient busy(running.port());
  busy.SendPost("/v1/completions", R"({"prompt":"a","max_tokens":3})");
  ASSERT_TRUE(Eventually([&] { return gate.entered.load(); }));
  EXPECT_EQ(Get(running.port(), "/health").status, 200);
  EXPECT_NE(Get(running.port(), "/metrics").body.find("vllm:num_requests_running"),
            std::string::npos);
  gate.open.set_value();
  EXPECT_EQ(busy.Read().status, 200);
  running.server->Stop(steady_clock::now());
}

TEST(Lifecycle, StopLetsRunningAnswersEnd) {
  Gate gate;
  ModelOptions options;
  options.script = Bytes("done");
  options.fake.before_step = gate.Hook();
  TestModel model(options);
  RunningServer running(model.served);
  RawClient idle(running.port());
  idle.SendGet("/health");
  EXPECT_EQ(idle.Read().status, 200);
  RawClient busy(running.port());
  busy.SendPost("/v1/completions", R"({"prompt":"a"})");
  ASSERT_TRUE(Eventually([&] { return gate.entered.load(); }));
  std::thread stopper([&] { running.server->Stop(steady_clock::now() + kLong); });
  EXPECT_TRUE(idle.AtEnd());
  gate.open.set_value();
  const auto answer = busy.Read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_EQ(Json::parse(answer.body)["choices"][0]["text"], "done");
  EXPECT_TRUE(busy.AtEnd());
  stopper.join();
}

TEST(Cases, C67_ADrainingServerSaysSoUntilItsLastRowIsDone) {
  Gate gate;
  ModelOptions options;
  options.script = Bytes("done");
  options.fake.before_step = gate.Hook();
  TestModel model(options);
  RunningServer running(model.served);
  RawClient busy(running.port());
  busy.SendPost("/v1/completions", R"({"prompt":"a"})");
  ASSERT_TRUE(Eventually([&] { return gate.entered.load(); }));
  std::thread stopper([&] { running.server->Stop(steady_clock::now() + kLong); });
  ASSERT_TRUE(Eventually([&] { return Get(running.port(), "/health").status == 503; }));
  for (int i = 0; i < 3; ++i) {
    const auto health = Get(running.port(), "/health");
    EXPECT_EQ(health.status, 503);
    EXPECT_EQ(health.headers.at("connection"), "close");
    EXPECT_NE(health.body.find("shutting down"), std::string::npos);
    for (const char* path : {"/v1/completions", "/v1/chat/completions"}) {
      const auto refused = Post(running.port(), path, R"({"prompt":"a"})");
      EXPECT_EQ(refused.status, 503);
      EXPECT_EQ(refused.headers.at("retry-after"), "1");
    }
    EXPECT_EQ(Get(running.port(), "/metrics").status, 200);
  }
  // One that connects and says nothing holds up nobody.
  RawClient silent(running.port());
  gate.open.set_value();
  const auto answer = busy.Read();
  EXPECT_EQ(Json::parse(answer.body)["choices"][0]["text"], "done");
  stopper.join();
  EXPECT_TRUE(silent.AtEnd());
}

TEST(Lifecycle, StopCancelsWhatOutlastsTheDeadline) {
  ModelOptions options;
  options.fake.max_context = 4000;
  TestModel model(options);
  RunningServer running(model.served);
  RawClient busy(running.port());
  busy.SendPost("/v1/completions", R"({"prompt":"a","stream":true,"ignore_eos":true})");
  ASSERT_TRUE(busy.ReadUntil("data: "));
  running.server->Stop(steady_clock::now());
  EXPECT_TRUE(Eventually([&] { return model.engine->stats().running == 0; }));
  EXPECT_EQ(model.engine->stats().finished_cancelled, 1u);
}

TEST(Lifecycle, TooManyConnectionsAreToldSo) {
  ServerOptions options;
  options.max_connections = 2;
  RunningServer running(options);
  RawClient one(running.port());
  RawClient two(running.port());
  one.SendGet("/health");
  EXPECT_EQ(one.Read().status, 503);  // no model, but served
  two.SendGet("/metrics");
  EXPECT_EQ(two.Read().status, 200);
  const auto refused = RawClient(running.port()).Read();
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("too many connections"), std::string::npos);
  one.Close();
  EXPECT_TRUE(Eventually([&] { return Get(running.port(), "/metrics").status == 200; }));
}

TEST(Lifecycle, AnIdleConnectionIsClosedSilently) {
  ServerOptions options;
  options.idle_timeout = std::chrono::milliseconds(20);
  RunningServer running(options);
  RawClient client(running.port());
  EXPECT_TRUE(client.AtEnd());
}

}  // namespace
}  // namespace lockstep
