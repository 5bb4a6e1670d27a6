// What a trace says of requests: every step they took part in, within their own time.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/engine_core.h"
#include "engine/testing/testing.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using testing::TestCore;
using testing::TestRequest;

class Trace : public ::testing::Test {
 protected:
  // The spans of requests that a core of 8 rows and 64 tokens a step was asked.
  void Run(const std::vector<GenerationRequest>& requests) {
    const auto path = (std::filesystem::path(::testing::TempDir()) / "engine_trace.json").string();
    EngineOptions options = TestCore::DefaultOptions();
    options.tracer = Tracer::Open(path).value();
    {
      TestCore test({}, options);
      for (const GenerationRequest& request : requests) {
        test.Submit(request);
        ids_.push_back(static_cast<int64_t>(test.last_id()));
      }
      while (test.core->RunOneStep()) test.now += std::chrono::milliseconds(1);
    }
    options.tracer.reset();
    std::ifstream file(path);
    const Json events = Json::parse(file);
    for (const Json& event : events) {
      spans_[event["tid"].get<int64_t>()][event["name"].get<std::string>()].push_back(event);
    }
  }
  // Of a lane, by name.
  const std::vector<Json>& Spans(int64_t lane, const std::string& name) {
    return spans_[lane][name];
  }

  std::vector<int64_t> ids_;

 private:
  std::map<int64_t, std::map<std::string, std::vector<Json>>> spans_;
};

TEST_F(Trace, ShowsTheLifeOfARequest) {
  GenerationRequest request = TestRequest(100, 1, 5);
  request.ignore_eos = true;
  Run({request});
  const int64_t lane = ids_[0];
  EXPECT_EQ(Spans(lane, "queue").size(), 1u);
  // 64 tokens a step: the prompt takes two, and the second one gives the first token.
  ASSERT_EQ(Spans(lane, "prompt").size(), 2u);
  EXPECT_EQ(Spans(lane, "prompt")[1]["args"], Json::parse(R"({"from":64,"tokens":36,"rows":1})"));
  EXPECT_EQ(Spans(lane, "first token").size(), 1u);
  ASSERT_EQ(Spans(lane, "decode").size(), 4u);
  EXPECT_EQ(Spans(lane, "decode")[3]["args"]["from"], 103);
  ASSERT_EQ(Spans(lane, "request").size(), 1u);
  const Json& whole = Spans(lane, "request")[0];
  EXPECT_EQ(whole["args"]["prompt_tokens"], 100);
  EXPECT_EQ(whole["args"]["cached_tokens"], 0);
  EXPECT_EQ(whole["args"]["new_tokens"], 5);
  // The engine's lane has the same steps with their parts.
  for (const char* name : {"step", "plan", "compute", "emit"}) {
    EXPECT_EQ(Spans(0, name).size(), 6u) << name;
  }
}

TEST_F(Trace, ShowsWhoSharedAStep) {
  std::vector<GenerationRequest> requests;
  for (uint64_t salt = 1; salt <= 3; ++salt) {
    requests.push_back(TestRequest(4, salt, 3));
    requests.back().ignore_eos = true;
  }
  Run(requests);
  for (const int64_t lane : ids_) {
    ASSERT_EQ(Spans(lane, "decode").size(), 2u);
    EXPECT_EQ(Spans(lane, "decode")[0]["args"]["rows"], 3);
    // In the same place of time as the step.
    EXPECT_EQ(Spans(lane, "decode")[0]["ts"], Spans(0, "compute")[1]["ts"]);
  }
}

}  // namespace
}  // namespace lockstep
