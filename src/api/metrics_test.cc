#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <variant>

#include "api/metrics/endpoint.h"
#include "api/testing/testing.h"

namespace lockstep {
namespace {

std::string Page(std::shared_ptr<const ServedModel> model) {
  HttpCounters http;
  http.connections = 3;
  ApiResult result = HandleMetrics({std::move(model), false, &http}, {});
  return std::get<ApiReply>(result).body;
}

// Every line is a comment or a sample, as the text format 0.0.4 says.
void ExpectValidExposition(const std::string& page) {
  const std::regex comment(R"(# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+)");
  const std::regex sample(
      R"re([a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_]\w*="([^"\\\n]|\\["\\n])*",?)*\})? [-+0-9.eE]+)re");
  std::set<std::string> types;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(std::regex_match(line, comment) || std::regex_match(line, sample)) << line;
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(types.insert(line).second) << "one family, once: " << line;
    }
  }
}

TEST(Metrics, C67_ValidExposition) {
  ExpectValidExposition(Page(nullptr));
  testing::TestModel model;
  model.served.id = "a\"b\\c";
  const std::string page = Page(std::make_shared<ServedModel>(model.served));
  ExpectValidExposition(page);
  for (const char* line :
       {"# TYPE vllm:num_requests_running gauge", "# TYPE vllm:prompt_tokens_total counter",
        "# TYPE vllm:time_to_first_token_seconds histogram",
        "vllm:num_requests_running{model_name=\"a\\\"b\\\\c\"} 0", "finished_reason=\"stop\"",
        "lockstep_queue_waits_for{model_name=\"a\\\"b\\\\c\",what=\"memory\"} 0",
        "lockstep_requests_running_open_ended", "le=\"+Inf\"",
        "lockstep_http_connections_total 3"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << "\n" << page;
  }
}

}  // namespace
}  // namespace lockstep
