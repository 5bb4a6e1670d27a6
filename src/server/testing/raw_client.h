// A blocking HTTP client for tests that must control every byte and the moment it leaves. Fails by
// returning what it got, and status 0, after `kPatience`. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::testing {

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;                            // chunks joined
  std::vector<std::string> events;             // what follows "data: ", when it is an event stream
};

class RawClient {
 public:
  // `receive_buffer` > 0 makes the kernel's small, so that a client that does not read is felt.
  explicit RawClient(uint16_t port, int receive_buffer = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void Send(std::string_view bytes);
  void SendPost(std::string_view path, std::string_view body, std::string_view headers = "");
  void SendGet(std::string_view path, std::string_view headers = "");

  // The next response, whole. `head`: of a HEAD request.
  RawResponse Read(bool head = false);
  // Waits until `text` has come; false when the connection ends first. Read() still finds it.
  bool Await(std::string_view text);
  // The same, and drops all up to its end.
  bool ReadUntil(std::string_view text);
  // Whether the server has closed its side, and nothing is left to read.
  bool AtEnd();

  void CloseWrite();
  void Close();
  void Reset();  // a close that the other side sees as a reset

 private:
  bool Fill();
  bool Take(size_t count, std::string* out);
  bool TakeLine(std::string* line);

  int fd_ = -1;
  std::string buffer_;
};

RawResponse Get(uint16_t port, std::string_view path);
RawResponse Post(uint16_t port, std::string_view path, std::string_view body);

}  // namespace lockstep::testing
