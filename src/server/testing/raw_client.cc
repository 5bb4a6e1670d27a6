#include "server/testing/raw_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"

namespace lockstep::testing {
namespace {

constexpr int kPatienceSeconds = 60;

}  // namespace

RawClient::RawClient(uint16_t port, int receive_buffer) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  LOCKSTEP_CHECK(fd_ >= 0);
  if (receive_buffer > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  const timeval patience{kPatienceSeconds, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  LOCKSTEP_CHECK(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
}

RawClient::~RawClient() { Close(); }

void RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void RawClient::SendPost(std::string_view path, std::string_view body, std::string_view headers) {
  Send(fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{}\r\n{}", path,
                   body.size(), headers, body));
}

void RawClient::SendGet(std::string_view path, std::string_view headers) {
  Send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", path, headers));
}

bool RawClient::Fill() {
  char bytes[16384];
  const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(got));
  return true;
}

bool RawClient::Take(size_t count, std::string* out) {
  while (buffer_.size() < count) {
    if (!Fill()) return false;
  }
  out->append(buffer_, 0, count);
  buffer_.erase(0, count);
  return true;
}

bool RawClient::TakeLine(std::string* line) {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return false;
  }
  *line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return true;
}

RawResponse RawClient::Read(bool head) {
  RawResponse response;
  std::string line;
  if (!TakeLine(&line) || line.size() < 12) return response;
  const int status = std::atoi(line.c_str() + 9);
  while (TakeLine(&line) && !line.empty()) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) return response;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    response.headers[name] = line.substr(colon + 2);
  }
  bool whole = true;
  if (head || status == 204 || status < 200) {
    // No body follows.
  } else if (response.headers.contains("transfer-encoding")) {
    while (true) {
      size_t size = 0;
      std::string end;
      if (!TakeLine(&line)) whole = false;
      if (whole) size = std::strtoul(line.c_str(), nullptr, 16);
      whole = whole && Take(size, &response.body) && Take(2, &end) && end == "\r\n";
      if (!whole || size == 0) break;
    }
  } else if (response.headers.contains("content-length")) {
    whole =
        Take(std::strtoul(response.headers["content-length"].c_str(), nullptr, 10), &response.body);
  } else {
    while (Fill()) {
    }
    response.body = std::exchange(buffer_, {});
  }
  if (whole) response.status = status;
  size_t at = 0;
  while ((at = response.body.find("data: ", at)) != std::string::npos) {
    const size_t end = response.body.find("\n\n", at);
    if (end == std::string::npos) break;
    response.events.push_back(response.body.substr(at + 6, end - at - 6));
    at = end;
  }
  return response;
}

bool RawClient::Await(std::string_view text) {
  while (buffer_.find(text) == std::string::npos) {
    if (!Fill()) return false;
  }
  return true;
}

bool RawClient::ReadUntil(std::string_view text) {
  if (!Await(text)) return false;
  buffer_.erase(0, buffer_.find(text) + text.size());
  return true;
}

bool RawClient::AtEnd() { return buffer_.empty() && !Fill() && buffer_.empty(); }

void RawClient::CloseWrite() { shutdown(fd_, SHUT_WR); }

void RawClient::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void RawClient::Reset() {
  const linger now{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  Close();
}

RawResponse Get(uint16_t port, std::string_view path) {
  RawClient client(port);
  client.SendGet(path);
  return client.Read();
}

RawResponse Post(uint16_t port, std::string_view path, std::string_view body) {
  RawClient client(port);
  client.SendPost(path, body);
  return client.Read();
}

}  // namespace lockstep::testing
