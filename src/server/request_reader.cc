#include "server/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string_view>

#include "api/error_map.h"
#include "server/access.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using std::chrono::steady_clock;
using Parser = http::request_parser<http::string_body>;
using Fields = http::request<http::string_body>;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr size_t kBodyBytesPerSecond = size_t{64} << 10;
constexpr size_t kMaxRequestId = 128;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

ApiReply Fault(int status, std::string_view message, std::string_view code) {
  ApiReply reply = JsonReply(ErrorBody(message, "invalid_request_error", code));
  reply.status = status;
  return reply;
}

// What a failed read of a header or a body is answered with; none: the client is gone.
std::optional<ApiReply> FaultOf(const error_code& error, const ClientSocket& client,
                                const ServerOptions& options) {
  if (client.gone()) return std::nullopt;
  if (client.expired()) {
    return Fault(408, "the request did not arrive in time", "request_timeout");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Fault(
        431, fmt::format("the request's header is larger than {} bytes", options.max_header_bytes),
        "header_too_large");
  }
  if (error == http::error::body_limit) {
    return Fault(413,
                 fmt::format("the request's body is larger than {} bytes", options.max_body_bytes),
                 "body_too_large");
  }
  if (error == http::error::bad_version) {
    return Fault(505, "only HTTP/1.0 and HTTP/1.1 are spoken here", "http_version");
  }
  const bool malformed =
      error.category() == http::make_error_code(http::error::bad_method).category();
  if (malformed && error != http::error::end_of_stream && error != http::error::partial_message) {
    return Fault(400, fmt::format("malformed HTTP: {}", error.message()), "malformed_http");
  }
  return std::nullopt;
}

// Lenient: what curl and simple clients send by default passes; what is surely no JSON does not.
bool ContentTypeIsFine(std::string_view type) {
  std::string lower(type.substr(0, type.find(';')));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  while (!lower.empty() && lower.back() == ' ') lower.pop_back();
  return lower.empty() || lower == "application/json" || lower.ends_with("+json") ||
         lower == "application/x-www-form-urlencoded" || lower == "application/octet-stream" ||
         lower == "text/plain";
}

bool IsRequestId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxRequestId &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

// What every answer to the request says of itself.
std::vector<std::pair<std::string, std::string>> AnswerHeaders(const Fields& fields,
                                                               const std::string& request_id,
                                                               const ServerOptions& options) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (!request_id.empty()) headers.emplace_back("X-Request-Id", request_id);
  if (options.cors_origins.empty()) return headers;
  headers.emplace_back("Vary", "Origin");
  std::string origin = AllowedOrigin(options.cors_origins, View(fields[http::field::origin]));
  if (origin.empty()) return headers;
  headers.emplace_back("Access-Control-Allow-Origin", std::move(origin));
  headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  if (fields.count(http::field::access_control_request_method) > 0) {
    headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS");
    headers.emplace_back("Access-Control-Allow-Headers",
                         View(fields[http::field::access_control_request_headers]));
    headers.emplace_back("Access-Control-Max-Age", "600");
  }
  return headers;
}

// The reply to a request whose header says enough; none: go on and read the body.
std::optional<ApiReply> CheckHeader(const Fields& fields, bool chunked, const RouteMatch& match,
                                    const ServerOptions& options) {
  if (fields.version() == 11 && fields.count(http::field::host) != 1) {
    return Fault(400, "an HTTP/1.1 request has exactly one Host header", "malformed_http");
  }
  if (fields.count(http::field::transfer_encoding) > 0 &&
      !(chunked && beast::iequals(fields[http::field::transfer_encoding], "chunked"))) {
    return Fault(501, "the only Transfer-Encoding spoken here is chunked", "transfer_encoding");
  }
  if (fields.method() == http::verb::options) {
    ApiReply reply;
    reply.status = 204;
    reply.content_type.clear();
    reply.headers.emplace_back("Allow",
                               match.allow.empty() ? "GET, HEAD, POST, OPTIONS" : match.allow);
    return reply;
  }
  if (match.route == nullptr && match.allow.empty()) {
    return Fault(404, fmt::format("there is nothing at {}", TargetPath(View(fields.target()))),
                 "not_found");
  }
  if (match.route == nullptr) {
    ApiReply reply =
        Fault(405, fmt::format("this path takes {}", match.allow), "method_not_allowed");
    reply.headers.emplace_back("Allow", match.allow);
    return reply;
  }
  if (!match.route->open) {
    const Status access = CheckAccess(options.api_keys, View(fields[http::field::authorization]),
                                      View(fields["x-api-key"]));
    if (!access.ok()) return match.route->error(access);
  }
  if (fields.count(http::field::content_encoding) > 0 &&
      !beast::iequals(fields[http::field::content_encoding], "identity")) {
    return Fault(415, "compressed request bodies are not taken", "content_encoding");
  }
  if (match.route->method == "POST" &&
      !ContentTypeIsFine(View(fields[http::field::content_type]))) {
    return Fault(415, "the body must be JSON (Content-Type: application/json)", "content_type");
  }
  if (fields.count(http::field::expect) > 0 &&
      !beast::iequals(fields[http::field::expect], "100-continue")) {
    return Fault(417, "the only Expect spoken here is 100-continue", "expectation");
  }
  return std::nullopt;
}

enum class Lines { kWhole, kPartial, kBareLf };

// Whether a header, from its request line to its empty line, is there. HTTP ends lines with CRLF
// alone: what takes a bare LF for an end sees other requests than what does not (RFC 9112, 2.2 and
// 11.2). The parser would wait for more.
Lines LinesOf(std::string_view bytes) {
  for (size_t at = bytes.find('\n'); at != bytes.npos; at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return Lines::kBareLf;
    if (at >= 3 && bytes.substr(at - 3, 3) == "\r\n\r") return Lines::kWhole;
  }
  return Lines::kPartial;
}

std::string_view Buffered(ClientSocket& client) {
  const auto bytes = client.buffer().data();
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

ApiReply BareLf() {
  return Fault(400, "malformed HTTP: a line ends in LF without CR", "malformed_http");
}

// Drops the empty lines before a request, which some clients send after a body (RFC 9112, 2.2).
// False: nothing else came.
asio::awaitable<bool> SkipEmptyLines(ClientSocket& client, steady_clock::time_point deadline) {
  while (true) {
    const std::string_view bytes = Buffered(client);
    if (bytes.starts_with("\r\n")) {
      client.buffer().consume(2);
    } else if (!bytes.empty() && bytes != "\r") {
      co_return true;
    } else {
      const bool more = co_await client.ReadMore(deadline);
      if (!more) co_return false;
    }
  }
}

// Reads until the header is whole, or wrong in a way that the parser would not see, or too long.
// False: the connection ended or the deadline passed first.
asio::awaitable<bool> FillHeader(ClientSocket& client, size_t limit,
                                 steady_clock::time_point deadline) {
  while (LinesOf(Buffered(client)) == Lines::kPartial && client.buffer().size() <= limit) {
    const bool more = co_await client.ReadMore(deadline);
    if (!more) co_return false;
  }
  co_return true;
}

}  // namespace

bool BodyCharge::Grow(size_t bytes) {
  bytes_ += bytes;
  return (state_.inflight_body_bytes += bytes) <= state_.options.max_inflight_body_bytes;
}

asio::awaitable<ReadOutcome> ReadRequest(ClientSocket& client, ServerState& state,
                                         HttpRequest* request, ApiReply* reply) {
  const ServerOptions& options = state.options;
  Parser parser;
  parser.header_limit(static_cast<uint32_t>(options.max_header_bytes));
  parser.body_limit(options.max_body_bytes);
  const bool begun = co_await SkipEmptyLines(client, steady_clock::now() + options.idle_timeout);
  if (!begun) co_return ReadOutcome::kClosed;
  const auto deadline = steady_clock::now() + options.header_timeout;
  const bool filled = co_await FillHeader(client, options.max_header_bytes, deadline);
  if (filled && LinesOf(Buffered(client)) == Lines::kBareLf) {
    *reply = BareLf();
    co_return ReadOutcome::kReply;
  }
  // What is there; after the deadline or the connection's end that is not enough.
  error_code error;
  size_t size = 0;
  if (!client.expired()) {
    client.SetDeadline(deadline);
    std::tie(error, size) =
        co_await http::async_read_header(client.socket(), client.buffer(), parser, kAwait);
    client.ClearDeadline();
  }
  if (error || client.expired()) {
    std::optional<ApiReply> fault = FaultOf(error, client, options);
    if (!fault) co_return ReadOutcome::kClosed;
    *reply = std::move(*fault);
    co_return ReadOutcome::kReply;
  }

  const Fields& fields = parser.get();
  request->head = fields.method() == http::verb::head;
  request->http_1_0 = fields.version() < 11;
  const std::string_view id = View(fields["x-request-id"]);
  if (IsRequestId(id)) request->request_id = id;
  request->answer_headers = AnswerHeaders(fields, request->request_id, options);
  request->match = state.router.Find(View(fields.method_string()), View(fields.target()));
  request->owner = AcceptedKey(options.api_keys, View(fields[http::field::authorization]),
                               View(fields["x-api-key"]));
  std::optional<ApiReply> early = CheckHeader(fields, parser.chunked(), request->match, options);
  if (early) {
    // A body that is not read would be taken for the next request, and after a fault of framing
    // nothing that follows is sure.
    request->keep_alive = fields.keep_alive() && parser.is_done() && early->status != 400;
    *reply = std::move(*early);
    co_return ReadOutcome::kReply;
  }
  if (fields.count(http::field::expect) > 0 && !request->http_1_0 && !parser.is_done()) {
    const bool written = co_await client.Write(kContinue, options.write_timeout);
    if (!written) co_return ReadOutcome::kClosed;
  }

  parser.eager(true);
  size_t charged = 0;
  bool starved = false;  // what is in the buffer is not enough to go on
  const auto body_start = steady_clock::now();
  while (!parser.is_done()) {
    if (client.buffer().size() == 0 || starved) {
      const bool more = co_await client.ReadMore(
          body_start + options.body_timeout + std::chrono::seconds(charged / kBodyBytesPerSecond));
      if (!more) {
        std::optional<ApiReply> fault = FaultOf({}, client, options);
        if (!fault) co_return ReadOutcome::kClosed;
        *reply = std::move(*fault);
        co_return ReadOutcome::kReply;
      }
    }
    client.buffer().consume(parser.put(client.buffer().data(), error));
    starved = error == http::error::need_more;
    // What is left is part of a chunk's first line, or of the trailer.
    const bool bare_lf = starved && LinesOf(Buffered(client)) == Lines::kBareLf;
    // A chunk's line or a trailer as long as no header may be.
    if (starved && client.buffer().size() > options.max_header_bytes) {
      error = http::error::header_limit;
      starved = false;
    }
    if (bare_lf || (error && !starved)) {
      std::optional<ApiReply> fault = bare_lf ? BareLf() : FaultOf(error, client, options);
      if (!fault) co_return ReadOutcome::kClosed;
      *reply = std::move(*fault);
      co_return ReadOutcome::kReply;
    }
    const size_t held = parser.get().body().size();
    const bool fits = request->charge.Grow(held - charged);
    charged = held;
    if (!fits) {
      *reply = ErrorReply(Unavailable("the server holds too many request bodies; try again"));
      co_return ReadOutcome::kReply;
    }
  }
  request->keep_alive = fields.keep_alive();
  request->body = std::move(parser.get().body());
  co_return ReadOutcome::kRequest;
}

}  // namespace lockstep
