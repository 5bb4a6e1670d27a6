#include "base/tracer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;

std::string PathOf(const char* name) {
  return (std::filesystem::path(testing::TempDir()) / name).string();
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Tracer, WritesWhatChromesFormatAsksFor) {
  const std::string path = PathOf("tracer_test.json");
  {
    const auto tracer = Tracer::Open(path).value();
    const auto now = std::chrono::steady_clock::now();
    tracer->Record({.name = "compute",
                    .lane = 0,
                    .begin = now,
                    .end = now + microseconds(1500),
                    .arguments = {{{"rows", 3}, {"tokens", -7}}}});
    tracer->Record({.name = "first token", .lane = 42, .begin = now, .end = now});
  }
  const Json events = Json::parse(ReadFile(path));
  ASSERT_EQ(events.size(), 4u);  // two name the lanes
  const Json& span = events[2];
  EXPECT_EQ(span["name"], "compute");
  EXPECT_EQ(span["ph"], "X");
  EXPECT_EQ(span["pid"], 1);
  EXPECT_EQ(span["tid"], 0);
  EXPECT_GE(span["ts"].get<double>(), 0);
  EXPECT_EQ(span["dur"], 1500.0);
  EXPECT_EQ(span["args"], Json::parse(R"({"rows":3,"tokens":-7})"));
  const Json& moment = events[3];
  EXPECT_EQ(moment["ph"], "i");
  EXPECT_EQ(moment["pid"], 2);
  EXPECT_EQ(moment["tid"], 42);
  EXPECT_FALSE(moment.contains("dur"));
  EXPECT_EQ(moment["args"], Json::object());
}

TEST(Tracer, ManyThreadsLoseNothing) {
  const std::string path = PathOf("tracer_threads.json");
  {
    const auto tracer = Tracer::Open(path).value();
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; ++t) {
      threads.emplace_back([&, t] {
        const auto now = std::chrono::steady_clock::now();
        for (int i = 0; i < 1000; ++i) {
          tracer->Record({.name = "n", .lane = t, .begin = now, .end = now + microseconds(i + 1)});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(Json::parse(ReadFile(path)).size(), 4002u);
}

TEST(Tracer, AFileThatCannotBeWrittenIsNamed) {
  const auto tracer = Tracer::Open("/nowhere/trace.json");
  ASSERT_FALSE(tracer.ok());
  EXPECT_NE(tracer.status().message().find("/nowhere/trace.json"), std::string::npos);
  EXPECT_EQ(tracer.status().param(), "trace");
}

}  // namespace
}  // namespace lockstep
