#include "server/session.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <variant>

#include "base/log.h"
#include "server/response.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kKeepAliveComment = ": keep-alive\n\n";
// Says nothing, and may precede any answer (RFC 9110, 15.2.1).
constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";

std::string NewUniqueId() {
  thread_local std::mt19937_64 generator{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  return fmt::format("{:016x}{:016x}", generator(), generator());
}

// Every failure that the metrics count, or a stream ends with, is a line of the log. `what` is what
// the client gets: it holds no prompt and no answer.
void LogFailure(const HttpRequest& request, int status, std::string_view what) {
  constexpr size_t kMost = 500;
  const std::string_view path =
      request.match.route != nullptr ? request.match.route->path : std::string_view("-");
  // A prober's question while the model loads: asked often, and answered, not failed.
  if (path == "/health" && status == 503) return;
  while (what.ends_with('\n')) what.remove_suffix(1);
  LogWarning("{} {} {}: {}", path, status,
             request.request_id.empty() ? "-" : std::string_view(request.request_id),
             what.substr(0, kMost));
}

constexpr std::chrono::milliseconds kMemoryRetry{10};

int64_t UnixNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// What an endpoint made of a request.
struct Session::Work {
  ApiReply reply;
  std::unique_ptr<GenerationRun> run;  // null: `reply` is the answer
  bool ready = false;                  // on the strand

  void Refuse(const HttpRequest& request) { reply = request.match.route->error(OutOfMemory()); }

  void Do(const HttpRequest& request, const ApiContext& context, const ServerState& state,
          const ClientSocket& client, const std::function<void()>& readable) {
    try {
      DoOrThrow(request, context, state, client, readable);
    } catch (const std::bad_alloc&) {
      Refuse(request);
    } catch (const std::exception& exception) {
      LogError("{}: {}", request.match.route->path, exception.what());
      reply = request.match.route->error(Internal("an unexpected error"));
    }
  }

 private:
  void DoOrThrow(const HttpRequest& request, const ApiContext& context, const ServerState& state,
                 const ClientSocket& client, const std::function<void()>& readable) {
    // It may have waited in a queue for longer than its client did.
    if (const Status there = CheckClient(&client.gone_flag()); !there.ok()) {
      reply = request.match.route->error(there);
      return;
    }
    const ApiCall call{request.body,        request.match.rest,  NewUniqueId(), UnixNow(),
                       &client.gone_flag(), request.match.query, request.owner};
    ApiResult result = request.match.route->handler(context, call);
    if (ApiReply* made = std::get_if<ApiReply>(&result)) {
      reply = std::move(*made);
      return;
    }
    auto started = GenerationRun::Start(std::get<GenerationJob>(std::move(result)),
                                        state.options.sink_events, readable);
    if (started.ok()) {
      run = std::move(started).value();
    } else {
      reply = request.match.route->error(started.status());
    }
  }
};

// Tells the strand; if there is no memory for that, once there is.
void Session::TellReady(const std::shared_ptr<ClientSocket>& client,
                        const std::shared_ptr<Work>& work) {
  const std::shared_ptr<ClientSocket> held = client;
  while (true) {
    try {
      asio::post(held->socket().get_executor(), [held, work] {
        work->ready = true;
        held->Wake();
      });
      return;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kMemoryRetry);
    }
  }
}

void StartSession(asio::ip::tcp::socket socket, ServerState& state) {
  ++state.http.connections;
  auto client = ClientSocket::Create(std::move(socket), state);
  const bool refuse =
      state.http.connections_open.load() > static_cast<int64_t>(state.options.max_connections);
  auto session = std::make_shared<Session>(client, state);
  const auto executor = client->socket().get_executor();
  asio::co_spawn(
      executor,
      [session, refuse]() -> asio::awaitable<void> {
        return refuse ? session->Refuse() : session->Serve();
      },
      [session](const std::exception_ptr& exception) {
        if (!exception) return;
        try {
          std::rethrow_exception(exception);
        } catch (const std::exception& what) {
          LogError("connection: {}", what.what());
        }
      });
}

asio::awaitable<void> Session::Refuse() {
  HttpRequest request(state_);
  const ApiReply reply = ErrorReply(Unavailable("too many connections; try again"));
  const bool sent = co_await Send(reply, request);
  static_cast<void>(sent);
  if (!client_->gone()) co_await client_->Finish();
}

asio::awaitable<void> Session::Serve() {
  bool more = true;
  while (more) {
    more = co_await client_->WaitForRequest(state_.options.idle_timeout);
    if (!more) co_return;
    more = co_await ServeOne();
    // While the server shuts down each connection has one request, which is told so.
    if (state_.draining) break;
  }
  if (!client_->gone()) co_await client_->Finish();
}

bool Session::KeepAlive(const HttpRequest& request) const {
  return request.keep_alive && !state_.draining && !client_->half_closed();
}

asio::awaitable<void> Session::Probe(const HttpRequest& request) {
  // HTTP/1.0 knows no interim responses.
  if (request.http_1_0 || !client_->TakeProbe()) co_return;
  const bool sent = co_await client_->Write(kInterim, state_.options.write_timeout);
  static_cast<void>(sent);  // on a failure the client is gone
}

asio::awaitable<bool> Session::ServeOne() {
  HttpRequest request(state_);
  ApiReply reply;
  const ReadOutcome outcome = co_await ReadRequest(*client_, state_, &request, &reply);
  if (outcome == ReadOutcome::kClosed) co_return false;
  bool more = false;
  if (outcome == ReadOutcome::kReply) {
    more = co_await Send(reply, request);
    co_return more;
  }
  client_->StartWatch([this] {
    if (running_ != nullptr) running_->Cancel();
    if (!preparing_) ++state_.http.disconnects;  // whoever reads it finds the row cancelled
  });
  more = co_await Answer(request);
  client_->StopWatch();
  co_return more;
}

asio::awaitable<bool> Session::Answer(HttpRequest& request) {
  std::optional<ServerState::Answering> answering;
  if (request.match.route->heavy && !state_.draining) answering.emplace(state_);
  preparing_ = true;
  const std::shared_ptr<Work> work = co_await Run(request);
  preparing_ = false;
  // What the body took is free while the answer is made.
  std::string().swap(request.body);
  if (client_->gone()) {
    // Its rows may run already.
    if (work->run != nullptr) work->run->Cancel();
    ++state_.http.disconnects;
    co_return false;
  }
  bool more = false;
  if (work->run == nullptr) {
    more = co_await Send(work->reply, request);
    co_return more;
  }
  running_ = work->run.get();
  if (running_->stream()) {
    more = co_await AnswerStream(*running_, request);
  } else {
    more = co_await AnswerWhole(*running_, request);
  }
  running_ = nullptr;
  co_return more;
}

asio::awaitable<std::shared_ptr<Session::Work>> Session::Run(HttpRequest& request) {
  auto work = std::make_shared<Work>();
  const ApiContext context = state_.Context();
  const std::function<void()> waker = client_->Waker();
  if (!request.match.route->heavy) {
    work->Do(request, context, state_, *client_, waker);
    co_return work;
  }
  try {
    state_.workers.Post(request.body.size(), [this, work, &request, &context, &waker] {
      work->Do(request, context, state_, *client_, waker);
      // The strand may resume, and end, the coroutine as soon as it is told: nothing of its frame
      // is touched from here on.
      TellReady(client_, work);
    });
  } catch (const std::bad_alloc&) {
    work->Refuse(request);
    work->ready = true;
  }
  while (!work->ready) {
    co_await client_->WaitForWake(std::nullopt);
    co_await Probe(request);
  }
  co_return work;
}

asio::awaitable<bool> Session::AnswerWhole(GenerationRun& run, const HttpRequest& request) {
  std::string none;
  ApiReply reply;
  while (!client_->gone()) {
    const Status status = run.Drain(&none);
    if (!status.ok() || run.done()) {
      if (status.ok()) {
        reply.body = run.writer().End();
      } else {
        reply = request.match.route->error(status);
      }
      const auto begin = std::chrono::steady_clock::now();
      const bool more = co_await Send(reply, request);
      TraceWrite("write", run.id(), begin);
      co_return more;
    }
    co_await client_->WaitForWake(state_.options.keep_alive_interval);
    co_await Probe(request);
    // Without a probe, who sends no more is taken for gone.
    if (client_->TakeProbe()) client_->Leave();
  }
  co_return false;
}

asio::awaitable<bool> Session::AnswerStream(GenerationRun& run, const HttpRequest& request) {
  const bool chunked = !request.http_1_0;
  ResponseHead head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  head.headers.insert(head.headers.end(), request.answer_headers.begin(),
                      request.answer_headers.end());
  head.chunked = chunked;
  head.keep_alive = KeepAlive(request) && chunked;
  ++state_.http.responses[2];

  std::string bytes = FormatHead(head);
  std::string events = run.writer().Begin();
  bool first = true;
  while (true) {
    Status status = run.Drain(&events);
    const bool over = !status.ok() || run.done();
    if (over && status.ok()) events += run.writer().End();
    if (!status.ok()) {
      const std::string failure = request.match.route->error_event(status);
      LogFailure(request, head.status, failure);
      events += failure;
    }
    if (!events.empty()) bytes += chunked ? FormatChunk(events) : events;
    if (over && chunked) bytes += kLastChunk;
    if (!bytes.empty()) {
      const auto begin = std::chrono::steady_clock::now();
      const bool sent = co_await client_->Write(bytes, state_.options.write_timeout);
      if (!sent) {
        run.Cancel();
        co_return false;
      }
      if (first || over) TraceWrite(first ? "first write" : "last write", run.id(), begin);
      first = false;
    }
    if (over) co_return status.ok() && head.keep_alive;
    bytes.clear();
    events.clear();
    const bool woken = co_await client_->WaitForWake(state_.options.keep_alive_interval);
    if (client_->gone()) co_return false;
    if (!woken || client_->TakeProbe()) events = kKeepAliveComment;
  }
}

void Session::TraceWrite(const char* name, RequestId id, TraceSpan::TimePoint begin) const {
  if (state_.options.tracer == nullptr) return;
  state_.options.tracer->Record({.name = name,
                                 .lane = static_cast<int64_t>(id),
                                 .begin = begin,
                                 .end = std::chrono::steady_clock::now()});
}

asio::awaitable<bool> Session::Send(const ApiReply& reply, const HttpRequest& request) {
  ResponseHead head;
  head.status = reply.status;
  head.content_type = reply.content_type;
  head.headers = reply.headers;
  head.headers.insert(head.headers.end(), request.answer_headers.begin(),
                      request.answer_headers.end());
  if (reply.status != 204) head.content_length = reply.body.size();
  head.keep_alive = KeepAlive(request);
  ++state_.http.responses[reply.status / 100];
  if (reply.status >= 500) LogFailure(request, reply.status, reply.body);
  std::string bytes = FormatHead(head);
  if (!request.head) bytes += reply.body;
  const bool sent = co_await client_->Write(bytes, state_.options.write_timeout);
  co_return sent&& head.keep_alive;
}

}  // namespace lockstep
