#include "server/access.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "api/json.h"
#include "api/testing/testing.h"
#include "server/testing/raw_client.h"
#include "server/testing/running_server.h"

namespace lockstep {
namespace {

using testing::RawClient;
using testing::RawResponse;
using testing::RunningServer;
using testing::TestModel;

TEST(CheckAccess, TakesAKeyEitherWay) {
  const std::vector<std::string> keys = {"first", "second-one"};
  EXPECT_TRUE(CheckAccess({}, "", "").ok());
  EXPECT_TRUE(CheckAccess(keys, "Bearer first", "").ok());
  EXPECT_TRUE(CheckAccess(keys, "bearer   second-one", "").ok());
  EXPECT_TRUE(CheckAccess(keys, "", "second-one").ok());
  EXPECT_TRUE(CheckAccess(keys, "Basic Zmlyc3Q=", "first").ok());
  for (const char* wrong : {"Bearer", "Bearer ", "Bearer firs", "Bearer firsT", "Bearer firstfirst",
                            "Bearer first second-one", "first", "Basic first"}) {
    EXPECT_EQ(CheckAccess(keys, wrong, "").code(), StatusCode::kUnauthenticated) << wrong;
  }
  for (const char* wrong : {"", "f", "second-onesecond-one", "Bearer first"}) {
    EXPECT_EQ(CheckAccess(keys, "", wrong).code(), StatusCode::kUnauthenticated) << wrong;
  }
}

TEST(KeyFile, HasAKeyALine) {
  const auto path = (std::filesystem::path(::testing::TempDir()) / "keys").string();
  std::ofstream(path) << "# ours\n\nkey-1\r\n  \nkey-2";
  EXPECT_EQ(ReadKeyFile(path).value(), (std::vector<std::string>{"key-1", "key-2"}));
  for (const char* bad : {"", "# nothing\n", "two words\n", "k\xC3\xA9y\n"}) {
    std::ofstream(path) << bad;
    const auto keys = ReadKeyFile(path);
    ASSERT_FALSE(keys.ok()) << bad;
    EXPECT_TRUE(keys.status().message().starts_with(path));
    EXPECT_EQ(keys.status().message().find("two words"), std::string::npos);
  }
  EXPECT_EQ(ReadKeyFile(path + ".not").status().param(), "api-key-file");
}

TEST(Origins, AreAllowedByNameOrAll) {
  const std::vector<std::string> some = {"https://a.example", "http://localhost:3000"};
  EXPECT_EQ(AllowedOrigin(some, "http://localhost:3000"), "http://localhost:3000");
  EXPECT_EQ(AllowedOrigin(some, "http://localhost:3001"), "");
  EXPECT_EQ(AllowedOrigin(some, ""), "");
  EXPECT_EQ(AllowedOrigin({"*"}, "https://b.example"), "*");
  EXPECT_EQ(AllowedOrigin({}, "https://b.example"), "");
}

class Access : public ::testing::Test {
 protected:
  Access() : running_(model_.served, Options()) {}
  ~Access() override { running_.server->Stop(std::chrono::steady_clock::now()); }
  static ServerOptions Options() {
    ServerOptions options;
    options.api_keys = {"sesame", "other"};
    options.cors_origins = {"https://page.example"};
    return options;
  }
  RawResponse Ask(const std::string& line, const std::string& headers,
                  const std::string& body = "") {
    RawClient client(running_.port());
    client.Send(line + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + headers +
                (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") +
                "\r\n" + body);
    return client.Read();
  }

  TestModel model_;
  RunningServer running_;
};

TEST_F(Access, NothingIsAnsweredWithoutAKey) {
  const std::string body = R"({"prompt":"a","max_tokens":1})";
  for (const char* headers : {"", "Authorization: Bearer open\r\n", "x-api-key: sesam\r\n"}) {
    for (const char* line : {"POST /v1/completions", "POST /v1/chat/completions", "GET /v1/models",
                             "POST /tokenize", "GET /version"}) {
      const RawResponse refused = Ask(line, headers, body);
      EXPECT_EQ(refused.status, 401) << line;
      EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
      const Json error = Json::parse(refused.body)["error"];
      EXPECT_EQ(error["code"], "invalid_api_key");
      EXPECT_EQ(error["type"], "invalid_request_error");
    }
    const Json error = Json::parse(Ask("POST /v1/messages", headers, body).body);
    EXPECT_EQ(error["type"], "error");
    EXPECT_EQ(error["error"]["type"], "authentication_error");
  }
  EXPECT_EQ(Ask("GET /v1/models", "Authorization: Bearer sesame\r\n").status, 200);
  EXPECT_EQ(Ask("GET /v1/models", "X-Api-Key: other\r\n").status, 200);
  EXPECT_EQ(Ask("POST /v1/completions", "x-api-key: sesame\r\n", body).status, 200);
  // Probers and gateways have none.
  EXPECT_EQ(Ask("GET /health", "").status, 200);
  EXPECT_EQ(Ask("GET /metrics", "").status, 200);
}

TEST_F(Access, ABodyIsNotReadWithoutAKey) {
  RawClient client(running_.port());
  client.Send("POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 50000000\r\n\r\n");
  EXPECT_EQ(client.Read().status, 401);
}

TEST_F(Access, PagesOfAllowedOriginsMayRead) {
  const std::string key = "Authorization: Bearer sesame\r\n";
  const std::string page = "Origin: https://page.example\r\n";
  const RawResponse allowed = Ask("GET /v1/models", key + page);
  EXPECT_EQ(allowed.headers.at("access-control-allow-origin"), "https://page.example");
  EXPECT_EQ(allowed.headers.at("vary"), "Origin");
  // Errors too, or the page would not see them.
  EXPECT_EQ(Ask("GET /v1/models", page).headers.count("access-control-allow-origin"), 1u);
  EXPECT_EQ(Ask("GET /nothing", page).headers.count("access-control-allow-origin"), 1u);
  EXPECT_EQ(Ask("GET /v1/models", key + "Origin: https://other.example\r\n")
                .headers.count("access-control-allow-origin"),
            0u);
  EXPECT_EQ(Ask("GET /v1/models", key).headers.count("access-control-allow-origin"), 0u);
  const RawResponse stream =
      Ask("POST /v1/completions", key + page, R"({"prompt":"a","max_tokens":1,"stream":true})");
  EXPECT_EQ(stream.headers.at("access-control-allow-origin"), "https://page.example");
}

TEST_F(Access, PreflightsNeedNoKey) {
  const RawResponse yes =
      Ask("OPTIONS /v1/chat/completions",
          "Origin: https://page.example\r\nAccess-Control-Request-Method: POST\r\n"
          "Access-Control-Request-Headers: authorization, content-type, x-stainless-os\r\n");
  EXPECT_EQ(yes.status, 204);
  EXPECT_EQ(yes.headers.at("access-control-allow-origin"), "https://page.example");
  EXPECT_NE(yes.headers.at("access-control-allow-methods").find("POST"), std::string::npos);
  EXPECT_EQ(yes.headers.at("access-control-allow-headers"),
            "authorization, content-type, x-stainless-os");
  const RawResponse no =
      Ask("OPTIONS /v1/chat/completions",
          "Origin: https://x.example\r\nAccess-Control-Request-Method: POST\r\n");
  EXPECT_EQ(no.status, 204);
  EXPECT_EQ(no.headers.count("access-control-allow-origin"), 0u);
}

}  // namespace
}  // namespace lockstep
