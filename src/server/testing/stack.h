// A model with a server in front of it, and what holds for every stream. For tests of server/
// alone.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "api/json.h"
#include "api/testing/testing.h"
#include "server/testing/raw_client.h"
#include "server/testing/running_server.h"
#include "text/utf8.h"

namespace lockstep::testing {

// A model, a server, and requests to it.
struct Stack {
  explicit Stack(ModelOptions model_options = {}, ServerOptions server_options = {})
      : model(std::move(model_options)), running(model.served, std::move(server_options)) {}
  ~Stack() { running.server->Stop(std::chrono::steady_clock::now()); }
  uint16_t port() const { return running.port(); }
  Json Complete(const std::string& fields) {
    const RawResponse response = Post(port(), "/v1/completions", "{" + fields + "}");
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body);
  }
  RawResponse Stream(const std::string& fields) {
    return Post(port(), "/v1/completions", "{\"stream\":true," + fields + "}");
  }

  TestModel model;
  RunningServer running;
};

// The text of choice `index`, joined; checks what holds for every stream.
inline std::string Joined(const RawResponse& response, int index = 0) {
  EXPECT_EQ(response.status, 200);
  EXPECT_FALSE(response.events.empty());
  if (response.events.empty()) return {};
  EXPECT_EQ(response.events.back(), "[DONE]");
  std::string text;
  int finishes = 0;
  std::string id;
  for (size_t i = 0; i + 1 < response.events.size(); ++i) {
    EXPECT_TRUE(IsValidUtf8(response.events[i]));
    const Json event = Json::parse(response.events[i]);
    if (id.empty()) id = event["id"];
    EXPECT_EQ(event["id"], id);
    for (const Json& choice : event["choices"]) {
      if (choice["index"] != index) continue;
      if (choice.contains("text")) {
        text += choice["text"].get<std::string>();
      } else {
        text += choice["delta"].value("content", "");
      }
      finishes += choice["finish_reason"].is_null() ? 0 : 1;
    }
  }
  EXPECT_EQ(finishes, 1);
  return text;
}

}  // namespace lockstep::testing
