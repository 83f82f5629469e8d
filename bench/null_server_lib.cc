#include "bench/null_server_lib.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <iterator>
#include <mutex>
#include <thread>

#include "http/json_cursor.h"
#include "http/request_parser.h"
#include "platform/real_loop.h"
#include "platform/socket.h"

namespace tokenstone::bench {
namespace {

using platform::Fd;

constexpr std::size_t kKeptLateness = std::size_t{1} << 20;
constexpr std::size_t kKeptBodies = 1000;
constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What a generation request asks for.
struct Asked {
  std::int64_t tokens = 16;
  std::int64_t prompt_tokens = 0;
  bool chat = false;
};

Asked read_request(const http::Request& request) {
  Asked asked;
  asked.chat = request.path.ends_with("chat/completions");
  std::string scratch(request.body.size(), '\0');
  http::JsonCursor json(request.body, scratch.data());
  if (json.peek() != '{') return asked;
  json.object([&](std::string_view key) {
    if (key == "max_tokens" || key == "max_completion_tokens") return json.integer_or_skip(asked.tokens);
    if (key == "prompt" && json.peek() == '[') {
      return json.array([&] {
        ++asked.prompt_tokens;
        return json.skip();
      });
    }
    return json.skip();
  });
  return asked;
}

void append_chunk(std::string& out, std::string_view bytes) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string simple_answer(int status, std::string_view type, std::string_view body, std::string_view more = {}) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}\r\n{}", status, type, body.size(),
                     more, body);
}

}  // namespace

bool behaviour_from_string(std::string_view name, NullBehaviour& behaviour) {
  static constexpr std::string_view kNames[] = {
      "stream",           "status",       "html",     "json_error", "gzip",  "empty",       "never_answer",
      "close_unanswered", "close_reused", "truncate", "reset",      "stall", "error_event", "malformed_event"};
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return false;
  behaviour = static_cast<NullBehaviour>(found - std::begin(kNames));
  return true;
}

struct NullServer::Impl {
  struct Connection {
    Fd fd;
    std::uint64_t id = 0;
    http::RequestParser parser{http::RequestLimits{}};
    std::string out;
    int requests = 0;
    bool close_when_sent = false;
    // The stream being sent.
    bool streaming = false;
    Asked asked;
    std::int64_t tokens_sent = 0;
    int events_sent = 0;
    TimeNs due = 0;
    TimerId timer;
  };

  NullServerOptions options;
  std::unique_ptr<platform::RealLoop> loop = platform::make_real_loop();
  Fd listener;
  std::uint16_t port = 0;
  std::thread thread;
  // The server's thread only.
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections;
  std::vector<std::unique_ptr<Connection>> closed;  ///< kept until their callback has returned
  std::uint64_t next_id = 0;
  std::string chunk;
  // Shared.
  mutable std::mutex mutex;
  NullServerStats counts;
  std::vector<std::int32_t> lateness;
  std::vector<std::string> bodies;

  void run();
  void accept_all();
  void on_ready(Connection& connection, Readiness ready);
  void read_from(Connection& connection);
  void take_request(Connection& connection);
  void answer_generation(Connection& connection, const http::Request& request);
  void start_stream(Connection& connection, TimeNs now);
  void send_events(Connection& connection);
  void append_event(Connection& connection);
  bool misbehave(Connection& connection);
  void end_stream(Connection& connection);
  void flush(Connection& connection);
  void close(Connection& connection);
  std::int64_t tokens_wanted(const Connection& connection) const {
    return options.output_tokens > 0 ? options.output_tokens : connection.asked.tokens;
  }
};

void NullServer::Impl::run() {
  if (options.pin_cpu >= 0) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(options.pin_cpu), &cpus);
    pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
  }
  loop->watch(listener.get(), {.readable = true}, [this](Readiness) { accept_all(); });
  loop->run();
  loop->unwatch(listener.get());
  while (!connections.empty()) close(*connections.begin()->second);
}

void NullServer::Impl::accept_all() {
  closed.clear();
  int error = 0;
  for (Fd fd = platform::accept_connection(listener.get(), error); fd.valid();
       fd = platform::accept_connection(listener.get(), error)) {
    auto connection = std::make_unique<Connection>();
    connection->fd = std::move(fd);
    connection->id = next_id++;
    Connection& added = *connection;
    connections.emplace(added.id, std::move(connection));
    loop->watch(added.fd.get(), {.readable = true}, [this, &added](Readiness ready) { on_ready(added, ready); });
    const std::lock_guard lock(mutex);
    ++counts.connections;
  }
}

void NullServer::Impl::on_ready(Connection& connection, Readiness ready) {
  closed.clear();
  if (ready.writable) flush(connection);
  if (connection.fd.valid() && (ready.readable || ready.hangup)) read_from(connection);
}

void NullServer::Impl::read_from(Connection& connection) {
  static thread_local std::array<char, 65536> buffer;
  while (connection.fd.valid()) {
    const auto received = platform::receive(connection.fd.get(), buffer);
    if (received.bytes < 0 && received.error == EAGAIN) return;
    if (received.bytes <= 0) return close(connection);
    std::string_view bytes(buffer.data(), static_cast<std::size_t>(received.bytes));
    while (!bytes.empty() && connection.fd.valid()) {
      bytes.remove_prefix(connection.parser.feed(bytes));
      if (connection.parser.error()) return close(connection);
      if (!connection.parser.complete()) break;
      // A client of ours never sends a request before the last answer has ended; one that does is cut off.
      if (connection.streaming) return close(connection);
      take_request(connection);
    }
  }
}

void NullServer::Impl::take_request(Connection& connection) {
  const http::Request request = connection.parser.request();
  connection.parser.next();
  ++connection.requests;
  if (request.path.ends_with("/completions")) return answer_generation(connection, request);
  if (request.path == "/v1/models") {
    connection.out += simple_answer(
        200, "application/json", R"({"object":"list","data":[{"id":"null","object":"model","max_model_len":131072}]})");
  } else if (request.path == "/version") {
    connection.out += simple_answer(200, "application/json", R"({"version":"null-server"})");
  } else if (request.path == "/health" || request.path == "/reset_prefix_cache") {
    connection.out += simple_answer(200, "text/plain", "");
  } else {
    connection.out += simple_answer(404, "application/json", R"({"error":{"message":"not here","code":404}})");
  }
  flush(connection);
}

void NullServer::Impl::answer_generation(Connection& connection, const http::Request& request) {
  {
    const std::lock_guard lock(mutex);
    ++counts.requests;
    if (bodies.size() < kKeptBodies) bodies.push_back(request.path + " " + request.body);
  }
  connection.asked = read_request(request);
  const TimeNs now = loop->now();
  switch (options.behaviour) {
    case NullBehaviour::status:
      connection.out +=
          simple_answer(options.status, "application/json",
                        fmt::format(R"({{"error":{{"message":"as told","type":"test","code":{}}}}})", options.status));
      return flush(connection);
    case NullBehaviour::html:
      connection.out += simple_answer(200, "text/html", "<html><body>data: starting</body></html>");
      return flush(connection);
    case NullBehaviour::json_error:
      connection.out += simple_answer(200, "application/json", R"({"error":{"message":"no room","code":507}})");
      return flush(connection);
    case NullBehaviour::gzip:
      connection.out += simple_answer(200, "text/event-stream", "\x1f\x8b\x08", "Content-Encoding: gzip\r\n");
      return flush(connection);
    case NullBehaviour::empty:
      connection.out += simple_answer(200, "text/event-stream", "data: [DONE]\n\n");
      return flush(connection);
    case NullBehaviour::never_answer:
      return;
    case NullBehaviour::close_unanswered:
      return close(connection);
    case NullBehaviour::close_reused:
      if (connection.requests > 1) return close(connection);
      return start_stream(connection, now);
    default:
      return start_stream(connection, now);
  }
}

void NullServer::Impl::start_stream(Connection& connection, TimeNs now) {
  connection.streaming = true;
  connection.tokens_sent = 0;
  connection.events_sent = 0;
  connection.due = now + options.ttft;
  connection.out += kStreamHead;
  connection.timer = loop->at(connection.due, [this, &connection] {
    closed.clear();
    send_events(connection);
  });
}

void NullServer::Impl::send_events(Connection& connection) {
  const TimeNs late = loop->now() - connection.due;
  {
    const std::lock_guard lock(mutex);
    if (lateness.size() < kKeptLateness)
      lateness.push_back(static_cast<std::int32_t>(std::min<TimeNs>(late, INT32_MAX)));
  }
  for (int i = 0; i < options.events_per_write && connection.tokens_sent < tokens_wanted(connection); ++i) {
    if (misbehave(connection)) return;
    append_event(connection);
  }
  flush(connection);
  if (!connection.fd.valid()) return;
  if (connection.tokens_sent >= tokens_wanted(connection)) return end_stream(connection);
  connection.due += options.itl;
  connection.timer = loop->at(connection.due, [this, &connection] {
    closed.clear();
    send_events(connection);
  });
}

void NullServer::Impl::append_event(Connection& connection) {
  const std::int64_t wanted = tokens_wanted(connection);
  connection.tokens_sent = std::min(wanted, connection.tokens_sent + options.tokens_per_event);
  ++connection.events_sent;
  const bool last = connection.tokens_sent == wanted;
  std::string usage;
  if (options.continuous_usage) {
    usage = fmt::format(R"(,"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}})",
                        connection.asked.prompt_tokens, connection.tokens_sent,
                        connection.asked.prompt_tokens + connection.tokens_sent);
  }
  chunk.clear();
  const auto to = std::back_inserter(chunk);
  const char* finish = last ? "\"length\"" : "null";
  if (connection.asked.chat) {
    fmt::format_to(
        to,
        "data: "
        "{{\"id\":\"chatcmpl-null-{}\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"null\","
        "\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" "
        "@{}\"}},\"logprobs\":null,\"finish_reason\":{}}}]{}}}\n\n",
        connection.id, platform::monotonic_now(), finish, usage);
  } else {
    fmt::format_to(
        to,
        "data: {{\"id\":\"cmpl-null-{}\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"null\","
        "\"choices\":[{{\"index\":0,\"text\":\" @{}\",\"logprobs\":null,\"finish_reason\":{}}}]{}}}\n\n",
        connection.id, platform::monotonic_now(), finish, usage);
  }
  append_chunk(connection.out, chunk);
  const std::lock_guard lock(mutex);
  ++counts.events;
}

/// The failure that the behaviour asks for, once its event number is reached; true when it ended the stream.
bool NullServer::Impl::misbehave(Connection& connection) {
  if (connection.events_sent < options.fail_after_events) return false;
  switch (options.behaviour) {
    case NullBehaviour::truncate:
      flush(connection);
      if (connection.fd.valid()) close(connection);
      return true;
    case NullBehaviour::reset:
      flush(connection);
      if (!connection.fd.valid()) return true;
      platform::reset_on_close(connection.fd.get());
      close(connection);
      return true;
    case NullBehaviour::stall:
      flush(connection);
      return true;
    case NullBehaviour::error_event:
      append_chunk(connection.out, "data: {\"error\":{\"message\":\"engine stopped\",\"code\":500}}\n\n");
      end_stream(connection);
      return true;
    case NullBehaviour::malformed_event:
      if (connection.events_sent == options.fail_after_events) append_chunk(connection.out, "data: {\"choices\":[\n\n");
      return false;
    default:
      return false;
  }
}

void NullServer::Impl::end_stream(Connection& connection) {
  const auto prompt = connection.asked.prompt_tokens;
  append_chunk(
      connection.out,
      fmt::format(
          "data: "
          "{{\"id\":\"null\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"null\",\"choices\":[],"
          "\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{}}}}}\n\n",
          prompt, connection.tokens_sent, prompt + connection.tokens_sent));
  append_chunk(connection.out, "data: [DONE]\n\n");
  connection.out += "0\r\n\r\n";
  connection.streaming = false;
  flush(connection);
}

void NullServer::Impl::flush(Connection& connection) {
  while (!connection.out.empty()) {
    int error = 0;
    const auto sent = platform::send_some(connection.fd.get(), connection.out, error);
    if (sent < 0 && error == EAGAIN) return loop->rewatch(connection.fd.get(), {.readable = true, .writable = true});
    if (sent < 0) return close(connection);
    connection.out.erase(0, static_cast<std::size_t>(sent));
  }
  loop->rewatch(connection.fd.get(), {.readable = true});
}

void NullServer::Impl::close(Connection& connection) {
  if (connection.streaming) {
    loop->cancel(connection.timer);
    const std::lock_guard lock(mutex);
    ++counts.abandoned;
  }
  loop->unwatch(connection.fd.get());
  connection.fd.reset();
  const auto found = connections.find(connection.id);
  closed.push_back(std::move(found->second));
  connections.erase(found);
}

NullServer::NullServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->thread = std::thread([this] { impl_->run(); });
}

NullServer::~NullServer() {
  impl_->loop->stop();
  impl_->thread.join();
}

Result<std::unique_ptr<NullServer>> NullServer::start(const NullServerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  TS_TRY(impl->listener, platform::listen_on(options.host, options.port, 4096));
  impl->port = platform::local_port(impl->listener.get());
  return std::unique_ptr<NullServer>(new NullServer(std::move(impl)));
}

std::uint16_t NullServer::port() const { return impl_->port; }
std::string NullServer::base_url() const { return fmt::format("http://{}:{}", impl_->options.host, impl_->port); }

NullServerStats NullServer::stats() const {
  NullServerStats stats;
  std::vector<std::int32_t> sorted;
  {
    const std::lock_guard lock(impl_->mutex);
    stats = impl_->counts;
    sorted = impl_->lateness;
  }
  if (sorted.empty()) return stats;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double q) {
    return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))] * 1e-3;
  };
  stats.lateness_p50_us = at(0.5);
  stats.lateness_p99_us = at(0.99);
  stats.lateness_max_us = at(1.0);
  return stats;
}

std::vector<std::string> NullServer::bodies() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->bodies;
}

}  // namespace tokenstone::bench
