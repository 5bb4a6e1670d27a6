#include "server/response.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace lockstep {

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string FormatHead(const ResponseHead& head) {
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\n", head.status,
                  ReasonPhrase(head.status), fmt::gmtime(std::time(nullptr)));
  if (!head.content_type.empty()) out += fmt::format("Content-Type: {}\r\n", head.content_type);
  for (const auto& [name, value] : head.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (head.content_length) out += fmt::format("Content-Length: {}\r\n", *head.content_length);
  if (head.chunked) out += "Transfer-Encoding: chunked\r\n";
  out += head.keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return out;
}

std::string FormatChunk(std::string_view data) {
  return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

}  // namespace lockstep
