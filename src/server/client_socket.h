// ClientSocket: one client's socket, with what Asio leaves open: deadlines that leave the socket
// usable, a watch that sees the client leave while nothing is read, and a wake-up from other
// threads. Knows no HTTP.
//
// Everything runs on the socket's strand, except what says otherwise. Held by shared_ptr; the
// server waits until the last holder is gone.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "server/server_state.h"

namespace lockstep {

class ClientSocket : public std::enable_shared_from_this<ClientSocket> {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // `socket` must run on a strand. Registers with `state`.
  static std::shared_ptr<ClientSocket> Create(boost::asio::ip::tcp::socket socket,
                                              ServerState& state);

  boost::asio::ip::tcp::socket& socket() { return socket_; }
  // Read but not yet parsed.
  boost::beast::flat_buffer& buffer() { return buffer_; }

  // While a deadline is set, an operation that it finds waiting fails, and expired() is true.
  void SetDeadline(std::chrono::steady_clock::time_point when);
  void ClearDeadline();
  bool expired() const { return expired_; }

  // Waits for the first byte of a request. False: the client left, or was idle for `timeout`, or
  // CloseIfIdle was called.
  boost::asio::awaitable<bool> WaitForRequest(Milliseconds timeout);

  // Adds what comes next to buffer(). False: the connection ended, or expired() is true.
  boost::asio::awaitable<bool> ReadMore(std::chrono::steady_clock::time_point deadline);

  // Each write must make progress within `timeout`. False: the connection is of no more use.
  boost::asio::awaitable<bool> Write(std::string_view data, Milliseconds timeout);

  // Says that nothing more will come, and takes in for a moment what the client still sends: a
  // close with unread bytes would destroy the answer on its way.
  boost::asio::awaitable<void> Finish();

  // Until StopWatch: bytes that come are kept for the next request, and `on_gone` is called once
  // when the client resets the connection, or the server closes it. When the client has ended its
  // side, Wake is called and TakeProbe is true once: it may still listen, or have left altogether,
  // and only the second resets the connection when something is written to it.
  void StartWatch(std::function<void()> on_gone);
  void StopWatch();
  bool TakeProbe() { return std::exchange(probe_, false); }
  void Leave() { MarkGone(); }  // the caller takes it for gone
  bool gone() const { return gone_; }
  // It sends nothing more, and all it sent was taken.
  bool half_closed() const { return half_closed_ && buffer_.size() == 0; }
  // The same for other threads; valid while the socket is held.
  const std::atomic<bool>& gone_flag() const { return gone_; }

  // Until the next Wake, or the last one nobody waited for. False: `timeout` has passed first.
  boost::asio::awaitable<bool> WaitForWake(std::optional<Milliseconds> timeout);
  void Wake();
  // Calls Wake on the strand; for any thread, at any time. Holds no share of the socket. Throws
  // std::bad_alloc, and has then done nothing.
  std::function<void()> Waker();

  // Thread-safe: ends the connection if it waits for a request; ends it whatever it does.
  void CloseIfIdle();
  void Close();

 private:
  // First member: unregisters after the socket is gone.
  struct Registration {
    ServerState& state;
    ClientSocket* self;
    Registration(ServerState& s, ClientSocket* c) : state(s), self(c) {}
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration();
  };

  ClientSocket(boost::asio::ip::tcp::socket socket, ServerState& state);
  void Watch();
  void OnReadable();
  void OnHalfClosed();
  void MarkGone();

  Registration registration_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;

  boost::asio::steady_timer deadline_;
  uint64_t deadline_generation_ = 0;
  bool expired_ = false;

  boost::asio::steady_timer wake_timer_;
  bool woken_ = false;
  std::atomic<bool> wake_posted_{false};

  std::function<void()> on_gone_;
  uint64_t watch_generation_ = 0;
  bool watching_ = false;
  std::atomic<bool> gone_{false};
  bool half_closed_ = false;
  bool probe_ = false;
  bool idle_ = false;
};

}  // namespace lockstep
