#include "server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "api/routes.h"
#include "base/log.h"
#include "server/client_socket.h"
#include "server/server_state.h"
#include "server/session.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

Result<tcp::endpoint> Resolve(asio::io_context& io, const ServerOptions& options) {
  error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  if (!error) return tcp::endpoint(address, options.port);
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(options.host, "", error);
  if (error || found.empty()) {
    return InvalidArgument(
        fmt::format("host '{}' is not an address: {}", options.host, error.message()), "host");
  }
  return tcp::endpoint(found.begin()->endpoint().address(), options.port);
}

Status BindError(const error_code& error, const ServerOptions& options) {
  if (error == asio::error::address_in_use) {
    return FailedPrecondition(
        fmt::format("port {} on {} is in use by another program", options.port, options.host),
        "port");
  }
  return IoError(
      fmt::format("cannot listen on {} port {}: {}", options.host, options.port, error.message()));
}

// SO_REUSEADDR lets a restart pass over connections in TIME_WAIT; two listeners on one port still
// fail, as they must. SO_REUSEPORT, which would let them share it, is never set.
Status Listen(const tcp::endpoint& endpoint, const ServerOptions& options,
              tcp::acceptor* acceptor) {
  error_code error;
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    acceptor->set_option(asio::ip::v6_only(false), error);
  }
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  return error ? BindError(error, options) : OkStatus();
}

// When descriptors run out, accepting again at once would spin.
constexpr std::chrono::milliseconds kAcceptRetry{50};

// For answers that are none of a model's, once the last of those has ended.
constexpr std::chrono::seconds kLastReplies{2};

}  // namespace

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options)
      : state_(std::make_unique<ServerState>(options, Routes())),
        acceptor_(asio::make_strand(state_->io)),
        work_(state_->io.get_executor()) {}

  Status Bind() {
    LOCKSTEP_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, Resolve(state_->io, state_->options));
    LOCKSTEP_RETURN_IF_ERROR(Listen(endpoint, state_->options, &acceptor_));
    port_ = acceptor_.local_endpoint().port();
    return OkStatus();
  }

  // A handler that throws has lost its own connection; the others go on.
  void RunIo() {
    while (true) {
      try {
        state_->io.run();
        return;
      } catch (const std::exception& error) {
        LogError("a connection ended on an unexpected error: {}", error.what());
      }
    }
  }

  void Start() {
    asio::co_spawn(acceptor_.get_executor(), Accept(), asio::detached);
    for (int i = 0; i < state_->options.io_threads; ++i) {
      threads_.emplace_back([this] { RunIo(); });
    }
  }

  void SetModel(ServedModel model) {
    auto shared = std::make_shared<const ServedModel>(std::move(model));
    const std::lock_guard lock(state_->mutex);
    state_->model = std::move(shared);
  }

  void Stop(std::chrono::steady_clock::time_point deadline) {
    if (stopped_) return;
    stopped_ = true;
    state_->draining = true;
    if (!threads_.empty()) {
      for (const auto& client : Clients()) client->CloseIfIdle();
      const bool all_answered = WaitUntil(deadline, [this] { return state_->answering == 0; });
      CloseAcceptor();
      // Who is being told that it is over gets a moment for it.
      const auto told = std::min(deadline, std::chrono::steady_clock::now() + kLastReplies);
      for (const auto& client : Clients()) client->CloseIfIdle();
      const auto none = [this] { return state_->clients.empty(); };
      if (!all_answered || !WaitUntil(told, none)) {
        for (const auto& client : Clients()) client->Close();
        WaitUntil(std::nullopt, none);
      }
    } else {
      CloseAcceptor();
    }
    work_.reset();
    state_->io.stop();
    for (std::thread& thread : threads_) thread.join();
    state_->workers.Join();
  }

  uint16_t port() const { return port_; }

 private:
  asio::awaitable<void> Accept() {
    while (acceptor_.is_open()) {
      auto [error, socket] = co_await acceptor_.async_accept(asio::make_strand(state_->io), kAwait);
      if (!error) {
        // One connection for which there is no memory is not the end of accepting.
        try {
          StartSession(std::move(socket), *state_);
        } catch (const std::exception& failure) {
          LogWarning("a connection could not be served: {}", failure.what());
        }
        continue;
      }
      if (error == asio::error::operation_aborted || !acceptor_.is_open()) co_return;
      LogWarning("accept: {}", error.message());
      asio::steady_timer pause(acceptor_.get_executor(), kAcceptRetry);
      co_await pause.async_wait(kAwait);
    }
  }

  std::vector<std::shared_ptr<ClientSocket>> Clients() {
    const std::lock_guard lock(state_->mutex);
    std::vector<std::shared_ptr<ClientSocket>> clients;
    for (const auto& [key, weak] : state_->clients) {
      if (auto client = weak.lock()) clients.push_back(std::move(client));
    }
    return clients;
  }

  void CloseAcceptor() {
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
    });
  }

  // Without a deadline it waits for as long as it takes. Whether `over` came true, under the mutex.
  template <typename Predicate>
  bool WaitUntil(std::optional<std::chrono::steady_clock::time_point> deadline, Predicate over) {
    std::unique_lock lock(state_->mutex);
    if (deadline) return state_->client_gone.wait_until(lock, *deadline, over);
    state_->client_gone.wait(lock, over);
    return true;
  }

  std::unique_ptr<ServerState> state_;
  tcp::acceptor acceptor_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
  uint16_t port_ = 0;
  bool stopped_ = false;
};

Result<std::unique_ptr<Server>> Server::Bind(const ServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  LOCKSTEP_RETURN_IF_ERROR(impl->Bind());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { impl_->Stop(std::chrono::steady_clock::now()); }
void Server::Start() { impl_->Start(); }
void Server::SetModel(ServedModel model) { impl_->SetModel(std::move(model)); }
void Server::Stop(std::chrono::steady_clock::time_point deadline) { impl_->Stop(deadline); }
uint16_t Server::port() const { return impl_->port(); }

}  // namespace lockstep
