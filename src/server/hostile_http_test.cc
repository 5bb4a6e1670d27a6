#include <gtest/gtest.h>

#include <string>

#include "api/json.h"
#include "api/testing/testing.h"
#include "server/testing/raw_client.h"
#include "server/testing/running_server.h"

namespace lockstep {
namespace {

using testing::Get;
using testing::Post;
using testing::RawClient;
using testing::RawResponse;
using testing::RunningServer;
using testing::TestModel;

class HostileHttp : public ::testing::Test {
 protected:
  HostileHttp() : running_(model_.served, Options()) {}
  ~HostileHttp() override {
    // Whatever a test did, the server still serves.
    EXPECT_EQ(Get(port(), "/health").status, 200);
    running_.server->Stop(std::chrono::steady_clock::now());
  }
  static ServerOptions Options() {
    ServerOptions options;
    options.max_body_bytes = 1 << 20;
    options.max_header_bytes = 4096;
    options.max_inflight_body_bytes = 3 << 20;
    options.header_timeout = std::chrono::milliseconds(200);
    options.body_timeout = std::chrono::milliseconds(200);
    return options;
  }
  uint16_t port() const { return running_.port(); }
  RawResponse Exchange(std::string_view bytes) {
    RawClient client(port());
    client.Send(bytes);
    return client.Read();
  }
  // The error body is OpenAI's on every fault of HTTP.
  static void ExpectError(const RawResponse& response, int status) {
    EXPECT_EQ(response.status, status) << response.body;
    if (response.status == 0) return;
    const Json body = Json::parse(response.body);
    EXPECT_TRUE(body["error"]["message"].is_string());
    EXPECT_EQ(response.headers.at("content-type"), "application/json");
  }

  TestModel model_;
  RunningServer running_;
};

TEST_F(HostileHttp, UnknownPathsAndMethods) {
  ExpectError(Get(port(), "/nothing"), 404);
  const RawResponse wrong = Get(port(), "/v1/completions");
  ExpectError(wrong, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "POST, OPTIONS");
  const RawResponse options = Exchange("OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers.at("allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(Exchange("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").status, 204);
}

TEST_F(HostileHttp, HeadHasLengthButNoBody) {
  RawClient client(port());
  client.Send("HEAD /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawResponse head = client.Read(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "15");
  EXPECT_EQ(client.Read().body, R"({"status":"ok"})");
}

TEST_F(HostileHttp, MalformedRequestsAreToldAndClosed) {
  for (const std::string bytes :
       {"\r\n\r\n\r\nnonsense\r\n\r\n",
        "GET\r\n\r\n",
        "\n",
        "GET /health HTTP/1.1\nHost: x\n\n",
        "GET /health HTTP/1.1\nHost: x\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\r\n\n",
        "\r\n\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /health HTTP/1.1\r\nA: b\nHost: x\r\n\r\n",
        "POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\n{}",
        "POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\n\n",
        "GET /health HTTP/9.9\r\n\r\n",
        "GET /health HTTP/1.1\r\nHo st: x\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
        "chunked\r\n\r\n0\r\n\r\n",
        "POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET /health HTTP/1.1\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 a TLS hello\r\n\r\n"}) {
    RawClient client(port());
    client.Send(bytes);
    RawResponse response = client.Read();
    EXPECT_TRUE(response.status == 400 || response.status == 505) << response.status << bytes;
    EXPECT_EQ(response.headers["connection"], "close") << bytes;
    EXPECT_TRUE(client.AtEnd()) << bytes;
  }
  ExpectError(Exchange("POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nx"),
              501);
}

TEST_F(HostileHttp, C57_AHugeBodyIsRefusedBeforeItComes) {
  RawClient client(port());
  client.Send(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3221225472\r\n\r\n"
      "0123456789");
  ExpectError(client.Read(), 413);
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HostileHttp, C57_AChunkedBodyIsRefusedWhenItGrowsTooLarge) {
  RawClient client(port());
  client.Send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'a') + "\r\n";
  for (int i = 0; i < 20; ++i) client.Send(chunk);
  ExpectError(client.Read(), 413);
}

TEST_F(HostileHttp, C57_ALegalBodyUpToTheLimitIsServed) {
  std::string body = R"({"prompt":"a","max_tokens":1,"user":")";
  body += std::string((1 << 20) - body.size() - 2, 'x') + "\"}";
  ASSERT_EQ(body.size(), size_t{1} << 20);
  EXPECT_EQ(Post(port(), "/v1/completions", body).status, 200);
  ExpectError(Post(port(), "/v1/completions", body + " "), 413);
}

TEST_F(HostileHttp, ChunkedBodiesAreRead) {
  EXPECT_EQ(Exchange("POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "8;ext=1\r\n{\"prompt\r\n6\r\n\":\"a\"}\r\n0\r\nTrailer: x\r\n\r\n")
                .body,
            R"({"count":1,"max_model_len":256,"tokens":[97]})");
}

TEST_F(HostileHttp, ALargeHeaderIs431) {
  ExpectError(Exchange("GET /health HTTP/1.1\r\nHost: x\r\nX: " + std::string(5000, 'a')), 431);
  ExpectError(Exchange("GET /" + std::string(5000, 'a')), 431);
}

TEST_F(HostileHttp, SlowClientsGet408) {
  ExpectError(Exchange("GET /health HTTP/1.1\r\nHos"), 408);
  ExpectError(Exchange("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{\"pr"),
              408);
}

TEST_F(HostileHttp, ContentTypes) {
  const auto with = [this](const std::string& headers) {
    RawClient client(port());
    client.SendPost("/tokenize", R"({"prompt":"a"})", headers);
    return client.Read();
  };
  EXPECT_EQ(with("").status, 200);
  EXPECT_EQ(with("Content-Type: application/json; charset=utf-8\r\n").status, 200);
  EXPECT_EQ(with("Content-Type: application/x-www-form-urlencoded\r\n").status, 200);
  ExpectError(with("Content-Type: multipart/form-data; boundary=x\r\n"), 415);
  ExpectError(with("Content-Encoding: gzip\r\n"), 415);
}

TEST_F(HostileHttp, ExpectContinue) {
  RawClient client(port());
  client.Send(
      "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read().status, 100);
  client.Send(R"({"prompt":"a"})");
  EXPECT_EQ(client.Read().status, 200);
  // Refused without being invited to send.
  client.Send(
      "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n"
      "Expect: 100-continue\r\n\r\n");
  ExpectError(client.Read(), 404);
}

TEST_F(HostileHttp, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client(port());
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    const std::string body =
        R"({"prompt":")" + std::string(static_cast<size_t>(i) + 1, 'a') + R"(","max_tokens":1})";
    bytes +=
        "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
  }
  client.Send(bytes);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Json::parse(client.Read().body)["count"], i + 1);
  client.Send("GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.Read().headers.at("connection"), "close");
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HostileHttp, AnUnreadBodyClosesTheConnection) {
  RawClient client(port());
  client.Send(
      "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 31\r\n\r\n"
      "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  ExpectError(client.Read(), 404);
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HostileHttp, EmptyLinesBeforeARequestAreDropped) {
  RawClient client(port());
  for (const std::string& before :
       {std::string("\r\n"), std::string(), std::string("\r\n\r\n"), std::string(100000, '\r')}) {
    std::string lines = before;
    for (size_t i = 1; i < lines.size(); i += 2) lines[i] = '\n';
    client.Send(lines + "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n" +
                R"({"prompt":"a"})");
    EXPECT_EQ(client.Read().status, 200);
  }
  // In pieces.
  for (const char* piece :
       {"\r", "\n", "\r", "\nGET /hea", "lth HTTP/1.1\r", "\nHost: x\r\n\r", "\n"}) {
    client.Send(piece);
  }
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(HostileHttp, RequestIdsAreEchoedIfHarmless) {
  RawClient client(port());
  client.SendGet("/health", "X-Request-Id: abc-123\r\n");
  EXPECT_EQ(client.Read().headers.at("x-request-id"), "abc-123");
  client.SendGet("/health", "X-Request-Id: " + std::string(200, 'a') + "\r\n");
  EXPECT_FALSE(client.Read().headers.contains("x-request-id"));
}

TEST_F(HostileHttp, Http10) {
  RawClient client(port());
  client.Send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HostileHttp, C33_NestedBodiesAreRefusedQuickly) {
  const std::string deep =
      R"({"prompt":"a","tools":)" + std::string(3000, '[') + std::string(3000, ']') + "}";
  ExpectError(Post(port(), "/v1/completions", deep), 400);
  ExpectError(Post(port(), "/v1/chat/completions", deep), 400);
}

TEST_F(HostileHttp, C56_AnyPrefixOfARequestLeavesTheServerWhole) {
  const std::string whole =
      "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"prompt\":\"a\"}";
  for (size_t length = 0; length < whole.size(); ++length) {
    RawClient client(port());
    client.Send(std::string_view(whole).substr(0, length));
    if (length % 3 == 0) client.Reset();
    if (length % 3 == 1) client.CloseWrite();
  }
}

}  // namespace
}  // namespace lockstep
