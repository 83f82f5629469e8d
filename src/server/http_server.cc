#include "server/http_server.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/rng.h"
#include "platform/real_loop.h"
#include "server/api_request.h"
#include "server/connection.h"
#include "server/engine_bridge.h"
#include "server/generation.h"
#include "server/json_text.h"
#include "server/metrics.h"
#include "server/prompt_builder.h"
#include "server/tcp.h"

namespace tokenstone::server {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPromText = "text/plain; version=0.0.4; charset=utf-8";
constexpr int kAcceptsPerRound = 256;  // so that a flood of connections does not keep answers waiting
constexpr TimeNs kSweepInterval = kSecond;

/// Compares in a time that does not depend on where they differ.
bool same_secret(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(wanted.empty() ? 0 : wanted[i % wanted.size()]);
  return difference == 0;
}

bool usable_as_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.' || c == ':';
  });
}

}  // namespace

struct HttpServer::Impl final : ConnectionOwner {
  struct Client {
    std::unique_ptr<Connection> connection;
    std::uint64_t serial = 0;      ///< tells it from a later one at the same address
    std::optional<GroupId> group;  ///< what it waits for
  };
  struct Active {
    Generation generation;
    Connection* connection;
  };
  using Handler = void (Impl::*)(Connection&, http::Request&, const AnswerStyle&);
  struct Route {
    std::string_view path, method;
    bool open;  ///< needs no API key
    Handler handle;
  };
  static std::span<const Route> routes();

  // fixed after construction
  Loop& io;
  const ServedModel model;
  const ServerOptions options;
  const std::int64_t started_seconds;
  // I/O thread only
  Listener listener;
  bool accept_paused = false;
  std::unordered_map<Connection*, Client> clients;
  using Gone = std::vector<std::unique_ptr<Connection>>;
  std::shared_ptr<Gone> gone = std::make_shared<Gone>();  // emptied later, perhaps when the server is no more
  std::unordered_map<GroupId, std::unique_ptr<Active>> active;
  std::uint64_t next_serial = 1, next_group = 1;
  Rng id_source;
  RequestDecoder decoder;
  PromptBuilder prompts;
  ServerMetrics metrics;
  std::vector<Connection*> touched;
  std::optional<TimerId> sweep_timer;
  std::function<void()> drained;
  bool draining = false;
  EngineBridge bridge;

  Impl(Loop& loop, runtime::EngineLoop& engine, Loop& engine_loop, ServedModel served, ServerOptions given,
       record::StepSink* next_steps)
      : io(loop),
        model(std::move(served)),
        options(std::move(given)),
        started_seconds(platform::wall_now() / kSecond),
        id_source(static_cast<std::uint64_t>(platform::wall_now()), streams::request_ids),
        prompts(model),
        metrics(model),
        bridge(engine, engine_loop, loop, next_steps, QueueLimits{model.max_num_seqs, options.max_queue},
               [this](const EngineBatch& batch) { on_batch(batch); }) {
    TS_CHECK(!model.names.empty() && model.tokenizer != nullptr, "a served model has a name and a tokenizer");
  }
  ~Impl() override {
    close_listener();
    if (sweep_timer) io.cancel(*sweep_timer);
  }

  // ---- listening and connections ----

  Result<std::uint16_t> listen() {
    TS_TRY(listener, listen_tcp(options.host, options.port));
    watch_listener();
    sweep_timer = io.at(io.now() + kSweepInterval, [this] { sweep(); });
    return listener.port;
  }

  void watch_listener() {
    io.watch(listener.fd, Readiness{.readable = true}, [this](Readiness) { accept_clients(); });
  }

  void close_listener() {
    if (listener.fd < 0) return;
    if (!accept_paused) io.unwatch(listener.fd);
    close_descriptor(listener.fd);
    listener.fd = -1;
  }

  void accept_clients() {
    for (int i = 0; i < kAcceptsPerRound; ++i) {
      const Accepted accepted = accept_tcp(listener.fd);
      if (accepted.state == IoState::no_descriptors) {
        // Out of descriptors: wait until a connection closes, or for the next sweep.
        accept_paused = true;
        io.unwatch(listener.fd);
        return;
      }
      if (accepted.state != IoState::done) return;
      auto connection = std::make_unique<Connection>(
          io, accepted.fd, http::RequestLimits{.max_body_bytes = options.max_body_bytes}, *this);
      Connection* key = connection.get();
      clients.emplace(key, Client{std::move(connection), next_serial++, std::nullopt});
    }
  }

  void resume_accepting() {
    if (!accept_paused || listener.fd < 0) return;
    accept_paused = false;
    watch_listener();
  }

  /// Ends connections that have been silent for too long, so that forgotten ones do not use up the descriptors.
  void sweep() {
    const TimeNs silent_since = io.now() - options.idle_timeout;
    std::vector<Connection*> silent;
    for (const auto& [connection, client] : clients)
      if ((!connection->busy() || connection->unsent() > 0) && connection->last_activity() < silent_since)
        silent.push_back(connection);
    for (Connection* connection : silent) connection->abandon();
    resume_accepting();
    sweep_timer = io.at(io.now() + kSweepInterval, [this] { sweep(); });
  }

  void on_gone(Connection& connection) override {
    const auto found = clients.find(&connection);
    TS_CHECK(found != clients.end(), "a connection went twice");
    if (found->second.group) cancel(*found->second.group);
    if (gone->empty()) io.post([waiting = gone] { waiting->clear(); });  // not inside its own call
    gone->push_back(std::move(found->second.connection));
    clients.erase(found);
    resume_accepting();
    check_drained();
  }

  void on_finished(Connection&) override { check_drained(); }

  void cancel(GroupId group) {
    const auto found = active.find(group);
    if (found == active.end()) return;
    for (std::size_t i = 0; i < found->second->generation.unfinished(); ++i) metrics.aborted();
    active.erase(found);
    bridge.cancel(group);
  }

  // ---- requests ----

  void on_bad_request(Connection& connection, const http::RequestError& error) override {
    answer_error(connection, AnswerStyle{.keep_alive = false}, ApiError{error.status, error.message, {}});
  }

  void on_request(Connection& connection, http::Request& request) override {
    const AnswerStyle style{request.minor_version, request.keep_alive && !draining, request.method == "HEAD"};
    const Route* at_path = nullptr;
    for (const Route& route : routes()) {
      if (route.path != request.path) continue;
      at_path = &route;
      if (route.method != request.method && !(style.head_only && route.method == "GET")) continue;
      if (!route.open && !authorized(request))
        return answer_error(connection, style,
                            {401, "an API key is needed: send the header 'Authorization: Bearer KEY'", {}},
                            "www-authenticate: Bearer\r\n");
      return (this->*route.handle)(connection, request, style);
    }
    if (at_path != nullptr)
      return answer_error(
          connection, style,
          {405, fmt::format("{} {} is not allowed; use {}", request.method, request.path, at_path->method), {}},
          fmt::format("allow: {}\r\n", at_path->method));
    answer_error(connection, style,
                 {404,
                  fmt::format("there is no {} here; this server has /v1/completions, /v1/chat/completions, /v1/models, "
                              "/tokenize, /detokenize, /health, /version, /metrics and /reset_prefix_cache",
                              request.path),
                  {}});
  }

  bool authorized(const http::Request& request) const {
    if (options.api_key.empty()) return true;
    constexpr std::string_view kScheme = "bearer ";
    const std::string_view value = request.header("authorization").value_or("");
    return value.size() > kScheme.size() && to_lower_ascii(value.substr(0, kScheme.size())) == kScheme &&
           same_secret(value.substr(kScheme.size()), options.api_key);
  }

  static std::string to_lower_ascii(std::string_view text) {
    std::string lower(text);
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    return lower;
  }

  void answer(Connection& connection, const AnswerStyle& style, std::string_view content_type, std::string_view body) {
    append_answer(connection.out(), style, 200, content_type, body);
    end_answer(connection, style.keep_alive);
  }

  void answer_error(Connection& connection, const AnswerStyle& style, const ApiError& error,
                    std::string_view extra = {}) {
    append_answer(connection.out(), style, error.status, kJson, error_body(error), extra);
    end_answer(connection, style.keep_alive);
  }

  void end_answer(Connection& connection, bool keep_alive) {
    connection.end_answer(keep_alive && !draining ? Connection::After::keep : Connection::After::close);
  }

  void completions(Connection& connection, http::Request& request, const AnswerStyle& style) {
    generate(connection, request, style, decoder.completion(request.body));
  }
  void chat_completions(Connection& connection, http::Request& request, const AnswerStyle& style) {
    generate(connection, request, style, decoder.chat(request.body));
  }

  std::string request_id(const http::Request& request, const GenerationRequest& decoded) {
    if (const auto given = request.header("x-request-id"); given && usable_as_id(*given)) return std::string(*given);
    if (usable_as_id(decoded.request_id)) return decoded.request_id;
    const std::uint64_t high = id_source.next_u64(), low = id_source.next_u64();
    return fmt::format("{:016x}{:016x}", high, low);
  }

  void generate(Connection& connection, http::Request& request, const AnswerStyle& style,
                ApiResult<GenerationRequest> decoded) {
    if (!decoded) return answer_error(connection, style, decoded.error());
    if (auto known = prompts.check_model(decoded->model); !known) return answer_error(connection, style, known.error());
    const std::string id = request_id(request, *decoded);
    auto built = prompts.build(*decoded, id);
    if (!built) return answer_error(connection, style, built.error());
    Generation::Setup setup;
    setup.identity = {decoded->chat, (decoded->chat ? "chatcmpl-" : "cmpl-") + id, platform::wall_now() / kSecond,
                      model.names.front(), decoded->continuous_usage};
    setup.style = style;
    setup.stream = decoded->stream;
    setup.include_usage = decoded->include_usage;
    setup.echoes = std::move(built->echoes);
    setup.received = io.now();
    for (const auto& prompt : built->requests)
      setup.prompt_tokens.push_back(static_cast<std::int64_t>(prompt.prompt.size()));
    const GroupId group{next_group++};
    active.emplace(group, std::make_unique<Active>(Active{Generation(std::move(setup)), &connection}));
    clients.at(&connection).group = group;
    bridge.submit(group, std::move(built->requests));
  }

  // ---- what the engine says ----

  void on_batch(const EngineBatch& batch) {
    for (const EngineEvent& event : batch.events) on_event(event, batch.text_of(event));
    const auto to_flush = std::exchange(touched, {});
    for (Connection* connection : to_flush) flush(*connection);
    check_drained();
  }

  void on_event(const EngineEvent& event, std::string_view text) {
    const auto found = active.find(event.group);
    if (found == active.end()) return;  // its client is gone
    Connection& connection = *found->second->connection;
    Generation& generation = found->second->generation;
    if (!std::exchange(generation.touched, true)) touched.push_back(&connection);
    bool complete = false;
    switch (event.kind) {
      case EngineEvent::accepted:
        generation.accepted(connection.out());
        break;
      case EngineEvent::output:
        complete = generation.take(connection.out(), event, text, metrics);
        break;
      case EngineEvent::refused:
        generation.refused(connection.out(), event.error);
        complete = true;
        break;
    }
    if (!complete) return;
    const bool keep_alive = generation.keep_alive();
    active.erase(found);
    clients.at(&connection).group.reset();
    end_answer(connection, keep_alive);
  }

  void flush(Connection& connection) {
    if (connection.gone()) return;
    connection.flush();
    if (connection.gone()) return;
    const auto& group = clients.at(&connection).group;
    if (!group) return;
    Generation& generation = active.at(*group)->generation;
    generation.touched = false;
    if (generation.streams() && connection.unsent() > options.max_unread_stream_bytes) connection.abandon();
  }

  // ---- small endpoints ----

  void models(Connection& connection, http::Request&, const AnswerStyle& style) {
    std::string body = "{\"object\":\"list\",\"data\":[";
    for (const std::string& name : model.names) {
      if (body.back() != '[') body += ',';
      body += "{\"id\":";
      append_json_untrusted(body, name);
      body += ",\"object\":\"model\",\"created\":";
      append_integer(body, started_seconds);
      body += ",\"owned_by\":\"tokenstone\",\"root\":";
      append_json_untrusted(body, model.root);
      body += ",\"parent\":null,\"max_model_len\":";
      append_integer(body, model.max_model_len);
      body += '}';
    }
    body += "]}";
    answer(connection, style, kJson, body);
  }

  void tokenize(Connection& connection, http::Request& request, const AnswerStyle& style) {
    auto decoded = decoder.tokenize(request.body);
    if (!decoded) return answer_error(connection, style, decoded.error());
    if (auto known = prompts.check_model(decoded->model); !known) return answer_error(connection, style, known.error());
    ApiResult<std::vector<TokenId>> tokens = decoded->prompt
                                                 ? prompts.text_tokens(*decoded->prompt, decoded->add_special_tokens)
                                                 : prompts.chat_tokens(decoded->messages, decoded->add_special_tokens);
    if (!tokens) return answer_error(connection, style, tokens.error());
    answer(connection, style, kJson, tokenize_body(*tokens, decoded->return_token_strs));
  }

  std::string tokenize_body(const std::vector<TokenId>& tokens, bool with_texts) const {
    std::string body = "{\"count\":";
    append_integer(body, static_cast<std::int64_t>(tokens.size()));
    body += ",\"max_model_len\":";
    append_integer(body, model.max_model_len);
    body += ",\"tokens\":[";
    for (const TokenId token : tokens) {
      if (body.back() != '[') body += ',';
      append_integer(body, token);
    }
    body += "],\"token_strs\":";
    if (!with_texts) return body + "null}";
    body += '[';
    for (const TokenId token : tokens) {
      if (body.back() != '[') body += ',';
      append_json_untrusted(body, model.tokenizer->token_bytes(token, true));
    }
    return body + "]}";
  }

  void detokenize(Connection& connection, http::Request& request, const AnswerStyle& style) {
    auto decoded = decoder.detokenize(request.body);
    if (!decoded) return answer_error(connection, style, decoded.error());
    if (auto known = prompts.check_model(decoded->model); !known) return answer_error(connection, style, known.error());
    for (const TokenId token : decoded->tokens)
      if (token >= model.vocab_size)
        return answer_error(
            connection, style,
            {400, fmt::format("token id {} is outside of the model's vocabulary of {} tokens", token, model.vocab_size),
             "tokens"});
    std::string body = "{\"prompt\":";
    append_json_untrusted(body, model.tokenizer->decode(decoded->tokens, false));
    body += '}';
    answer(connection, style, kJson, body);
  }

  void health(Connection& connection, http::Request&, const AnswerStyle& style) { answer(connection, style, {}, {}); }

  void version(Connection& connection, http::Request&, const AnswerStyle& style) {
    std::string body = "{\"version\":";
    append_json_untrusted(body, options.version);
    body += ",\"server\":\"tokenstone\"";
    for (const auto& [key, value] : model.about) {
      body += ',';
      append_json_untrusted(body, key);
      body += ':';
      append_json_untrusted(body, value);
    }
    body += '}';
    answer(connection, style, kJson, body);
  }

  void metrics_page(Connection& connection, http::Request&, const AnswerStyle& style) {
    answer(connection, style, kPromText, metrics.page(bridge.stats()));
  }

  void reset_prefix_cache(Connection& connection, http::Request&, const AnswerStyle& style) {
    const std::uint64_t serial = clients.at(&connection).serial;
    bridge.reset_prefix_cache([this, key = &connection, serial, style](bool emptied) {
      const auto found = clients.find(key);
      if (found == clients.end() || found->second.serial != serial) return;
      if (emptied)
        answer(*key, style, {}, {});
      else
        answer_error(*key, style,
                     {409, "the prefix cache is in use by running requests; try again when the server is idle", {}});
      flush(*key);
      check_drained();
    });
  }

  // ---- the end ----

  void drain(std::function<void()> done) {
    draining = true;
    drained = std::move(done);
    close_listener();
    std::vector<Connection*> waiting;
    for (const auto& [connection, client] : clients)
      if (!connection->busy()) waiting.push_back(connection);
    for (Connection* connection : waiting) connection->close_when_sent();
    check_drained();
  }

  void check_drained() {
    if (!drained || !active.empty()) return;
    for (const auto& [connection, client] : clients)
      if (!connection->finished()) return;
    std::exchange(drained, nullptr)();
  }

  void stop() {
    close_listener();
    std::vector<Connection*> all;
    for (const auto& [connection, client] : clients) all.push_back(connection);
    for (Connection* connection : all) connection->abandon();
  }
};

std::span<const HttpServer::Impl::Route> HttpServer::Impl::routes() {
  static constexpr Route kRoutes[] = {
      {"/v1/completions", "POST", false, &Impl::completions},
      {"/v1/chat/completions", "POST", false, &Impl::chat_completions},
      {"/v1/models", "GET", false, &Impl::models},
      {"/tokenize", "POST", false, &Impl::tokenize},
      {"/detokenize", "POST", false, &Impl::detokenize},
      {"/reset_prefix_cache", "POST", false, &Impl::reset_prefix_cache},
      {"/health", "GET", true, &Impl::health},
      {"/version", "GET", true, &Impl::version},
      {"/metrics", "GET", true, &Impl::metrics_page},
  };
  return kRoutes;
}

HttpServer::HttpServer(Loop& io, runtime::EngineLoop& engine, Loop& engine_loop, ServedModel model,
                       ServerOptions options, record::StepSink* next_steps)
    : impl_(std::make_unique<Impl>(io, engine, engine_loop, std::move(model), std::move(options), next_steps)) {}
HttpServer::~HttpServer() = default;

Result<std::uint16_t> HttpServer::listen() { return impl_->listen(); }

std::string HttpServer::url() const {
  const Listener& at = impl_->listener;
  const std::string host = at.host.find(':') == std::string::npos ? at.host : "[" + at.host + "]";
  return fmt::format("http://{}:{}", host, at.port);
}

void HttpServer::drain(std::function<void()> done) { impl_->drain(std::move(done)); }
void HttpServer::stop() { impl_->stop(); }
ServerCounts HttpServer::counts() const { return {impl_->clients.size(), impl_->active.size()}; }

}  // namespace tokenstone::server
