#include "server/client_socket.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <new>
#include <utility>

namespace lockstep {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// What pipelined requests may take while an answer is in work; after that the watch stops reading.
constexpr size_t kMaxReadAhead = size_t{64} << 10;
constexpr size_t kReadBytes = size_t{16} << 10;

constexpr std::chrono::seconds kFinishTime{2};
constexpr size_t kFinishBytes = size_t{4} << 20;

}  // namespace

std::shared_ptr<ClientSocket> ClientSocket::Create(tcp::socket socket, ServerState& state) {
  std::shared_ptr<ClientSocket> client(new ClientSocket(std::move(socket), state));
  const std::lock_guard lock(state.mutex);
  state.clients.emplace(client.get(), client);
  state.http.connections_open = static_cast<int64_t>(state.clients.size());
  return client;
}

ClientSocket::Registration::~Registration() {
  const std::lock_guard lock(state.mutex);
  state.clients.erase(self);
  state.http.connections_open = static_cast<int64_t>(state.clients.size());
  state.client_gone.notify_all();
}

ClientSocket::ClientSocket(tcp::socket socket, ServerState& state)
    : registration_(state, this),
      socket_(std::move(socket)),
      // Room for a header as large as is allowed, and for bytes of what follows it.
      buffer_(state.options.max_header_bytes + kMaxReadAhead + kReadBytes),
      deadline_(socket_.get_executor()),
      wake_timer_(socket_.get_executor()) {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(tcp::socket::send_buffer_size(state.options.send_buffer_bytes), ignored);
  socket_.non_blocking(true, ignored);
}

void ClientSocket::SetDeadline(steady_clock::time_point when) {
  expired_ = false;
  const uint64_t generation = ++deadline_generation_;
  deadline_.expires_at(when);
  deadline_.async_wait([self = shared_from_this(), generation](const error_code& error) {
    if (error || generation != self->deadline_generation_) return;
    self->expired_ = true;
    error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void ClientSocket::ClearDeadline() {
  ++deadline_generation_;
  deadline_.cancel();
}

asio::awaitable<bool> ClientSocket::WaitForRequest(Milliseconds timeout) {
  if (gone_) co_return false;
  if (buffer_.size() > 0) co_return true;
  idle_ = true;
  const bool more = co_await ReadMore(steady_clock::now() + timeout);
  idle_ = false;
  co_return more;
}

asio::awaitable<bool> ClientSocket::ReadMore(steady_clock::time_point deadline) {
  SetDeadline(deadline);
  const auto space = buffer_.prepare(kReadBytes);
  const auto [error, size] = co_await socket_.async_read_some(space, kAwait);
  ClearDeadline();
  if (error) co_return false;
  buffer_.commit(size);
  co_return true;
}

asio::awaitable<bool> ClientSocket::Write(std::string_view data, Milliseconds timeout) {
  while (!data.empty() && !gone_) {
    SetDeadline(steady_clock::now() + timeout);
    const auto piece = asio::buffer(data.data(), data.size());
    const auto [error, size] = co_await socket_.async_write_some(piece, kAwait);
    if (error) {
      ClearDeadline();
      MarkGone();
      co_return false;
    }
    data.remove_prefix(size);
  }
  ClearDeadline();
  co_return !gone_;
}

asio::awaitable<void> ClientSocket::Finish() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  SetDeadline(steady_clock::now() + kFinishTime);
  size_t taken = 0;
  while (taken < kFinishBytes && !registration_.state.draining) {
    buffer_.clear();
    const auto space = buffer_.prepare(kReadBytes);
    const auto [error, size] = co_await socket_.async_read_some(space, kAwait);
    if (error) break;
    taken += size;
  }
  ClearDeadline();
}

void ClientSocket::StartWatch(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  watching_ = true;
  ++watch_generation_;
  Watch();
}

void ClientSocket::StopWatch() {
  on_gone_ = nullptr;
  if (!std::exchange(watching_, false)) return;
  // A handler that is already on its way sees the new generation and does nothing.
  ++watch_generation_;
  error_code ignored;
  socket_.cancel(ignored);
}

void ClientSocket::Watch() {
  if (buffer_.size() >= kMaxReadAhead) return;
  socket_.async_wait(
      tcp::socket::wait_read,
      [self = shared_from_this(), generation = watch_generation_](const error_code& error) {
        if (generation != self->watch_generation_ || !self->watching_ || error) return;
        self->OnReadable();
      });
}

void ClientSocket::OnReadable() {
  error_code error;
  const size_t size = socket_.read_some(buffer_.prepare(kReadBytes), error);
  if (error == asio::error::would_block || error == asio::error::interrupted) return Watch();
  if (error == asio::error::eof) return OnHalfClosed();
  if (error) return MarkGone();
  buffer_.commit(size);
  Watch();
}

void ClientSocket::OnHalfClosed() {
  half_closed_ = true;
  probe_ = true;
  socket_.async_wait(
      tcp::socket::wait_error,
      [self = shared_from_this(), generation = watch_generation_](const error_code& error) {
        if (generation != self->watch_generation_ || !self->watching_ || error) return;
        self->MarkGone();
      });
  Wake();
}

void ClientSocket::MarkGone() {
  if (gone_.exchange(true)) return;
  error_code ignored;
  socket_.cancel(ignored);
  if (on_gone_) std::exchange(on_gone_, nullptr)();
  Wake();
}

asio::awaitable<bool> ClientSocket::WaitForWake(std::optional<Milliseconds> timeout) {
  if (!woken_) {
    wake_timer_.expires_at(timeout ? steady_clock::now() + *timeout
                                   : steady_clock::time_point::max());
    co_await wake_timer_.async_wait(kAwait);
  }
  co_return std::exchange(woken_, false);
}

void ClientSocket::Wake() {
  woken_ = true;
  wake_timer_.cancel();
}

std::function<void()> ClientSocket::Waker() {
  return [weak = weak_from_this()] {
    const std::shared_ptr<ClientSocket> self = weak.lock();
    if (self == nullptr || self->wake_posted_.exchange(true)) return;
    try {
      asio::post(self->socket_.get_executor(), [self] {
        self->wake_posted_ = false;
        self->Wake();
      });
    } catch (const std::bad_alloc&) {
      self->wake_posted_ = false;
      throw;
    }
  };
}

void ClientSocket::CloseIfIdle() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    if (self->idle_) self->socket_.cancel(ignored);
  });
}

void ClientSocket::Close() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->MarkGone();
    error_code ignored;
    self->socket_.close(ignored);
  });
}

}  // namespace lockstep
