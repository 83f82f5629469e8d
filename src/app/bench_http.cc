// A server over HTTP as what `bench serve` measures: discovery, tokenizer, ready check, and the target itself.
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/bench_target.h"
#include "base/text.h"
#include "http/url.h"
#include "loadgen/http_fetch.h"
#include "loadgen/http_target.h"
#include "loadgen/remote_tokenizer.h"
#include "platform/real_loop.h"

namespace tokenstone::app {
namespace {

using nlohmann::json;

constexpr TimeNs kProbeTimeout = 10 * kSecond;
constexpr TimeNs kReadyTimeout = 120 * kSecond;
constexpr TimeNs kReadyPause = kSecond;

struct Discovery {
  std::string model;
  std::optional<std::int64_t> max_model_len;
  std::string software;            ///< "vllm", "tokenstone": who owns the model's entry
  std::string server = "unknown";  ///< with its version
};

Result<std::vector<http::Header>> request_headers(const BenchServeOptions& o) {
  std::vector<http::Header> headers;
  for (const std::string& word : o.headers) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos || at == 0) return usage_error("--header takes NAME=VALUE", "header");
    headers.push_back({word.substr(0, at), word.substr(at + 1)});
  }
  return headers;
}

std::string api_key() {
  const char* key = std::getenv("OPENAI_API_KEY");
  return key == nullptr ? "" : key;
}

/// The beginning of an answer, on one line, for a person.
std::string excerpt(std::string_view body) {
  std::string line = to_valid_utf8(body.substr(0, 120));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return std::string(trim(line));
}

Error unreachable(const http::Url& url, const std::string& why) {
  return {ErrorKind::unreachable, fmt::format("{}: {}; check --base-url and that the server runs", url.text(), why),
          "base-url"};
}

json list_of_models(const loadgen::HttpReply& reply) {
  const json body = json::parse(reply.body, nullptr, false);
  if (!body.is_object() || !body.contains("data") || !body["data"].is_array()) return json::array();
  return body["data"];
}

/// The model's entry: the one asked for, else the first.
Result<Discovery> discover(const http::Url& url, const std::vector<http::Header>& headers, const BenchServeOptions& o) {
  Discovery found;
  found.model = o.served_model_name.empty() ? o.model : o.served_model_name;
  const auto reply = loadgen::http_get(url, "/v1/models", headers, kProbeTimeout);
  if (!reply) return std::unexpected(unreachable(url, reply.error().message));
  const json models = reply->ok() ? list_of_models(*reply) : json::array();
  for (const json& entry : models) {
    if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_string()) continue;
    if (found.model.empty()) found.model = entry["id"].get<std::string>();
    if (entry["id"] != found.model) continue;
    if (entry.contains("owned_by") && entry["owned_by"].is_string())
      found.software = entry["owned_by"].get<std::string>();
    if (entry.contains("max_model_len") && entry["max_model_len"].is_number_integer())
      found.max_model_len = entry["max_model_len"].get<std::int64_t>();
    break;
  }
  if (found.model.empty())
    return std::unexpected(Error{ErrorKind::unreachable,
                                 fmt::format("{}/v1/models answered {} and names no model ({}); give --model",
                                             url.text(), reply->status, excerpt(reply->body)),
                                 "model"});
  const auto version = loadgen::http_get(url, "/version", headers, kProbeTimeout);
  if (version && version->ok()) {
    const json body = json::parse(version->body, nullptr, false);
    if (body.is_object() && body.contains("version") && body["version"].is_string())
      found.server = found.software + (found.software.empty() ? "" : " ") + body["version"].get<std::string>();
  }
  return found;
}

bool is_local_model(const std::string& name) { return !name.empty() && std::filesystem::exists(name); }

/// The model's own folder, else the server's /tokenize; null when lengths stay nominal.
token::TokenizerPtr choose_tokenizer(const http::Url& url, const std::vector<http::Header>& headers,
                                     const BenchServeOptions& o, const std::string& model) {
  if (o.skip_tokenizer_init) return token::TokenizerPtr{};
  if (is_local_model(o.model))
    if (auto local = token::load_tokenizer(o.model)) return *local;
  if (auto remote = loadgen::connect_remote_tokenizer({.url = url, .headers = headers, .model = model})) return *remote;
  return token::TokenizerPtr{};
}

TimeNs limit_of(double seconds) { return seconds == 0 ? kNever / 4 : from_seconds(seconds); }

loadgen::HttpTargetOptions target_options(const BenchServeOptions& o, const Discovery& found,
                                          std::vector<http::Header> headers) {
  loadgen::HttpTargetOptions t;
  t.base_url = o.url();
  t.endpoint = o.endpoint;
  t.backend = o.backend == "openai-chat" ? loadgen::HttpBackend::openai_chat : loadgen::HttpBackend::openai;
  t.model = found.model;
  t.ignore_eos = o.ignore_eos;
  t.temperature = o.temperature;
  t.top_p = o.top_p;
  t.top_k = o.top_k;
  t.min_p = o.min_p;
  t.frequency_penalty = o.frequency_penalty;
  t.presence_penalty = o.presence_penalty;
  t.repetition_penalty = o.repetition_penalty;
  t.extra_body = o.extra_body;
  t.headers = std::move(headers);
  t.api_key = api_key();
  t.request_id_prefix = o.request_id_prefix;
  t.connect_timeout = limit_of(o.connect_timeout_sec);
  t.first_token_timeout = limit_of(o.first_token_timeout_sec);
  t.gap_timeout = limit_of(o.gap_timeout_sec);
  t.total_timeout = limit_of(o.total_timeout_sec);
  if (o.max_concurrency)
    t.connections_ahead = static_cast<std::uint32_t>(std::min<std::int64_t>(*o.max_concurrency, 256));
  t.server = found.server;
  t.max_model_len = found.max_model_len;
  return t;
}

/// Watches the one request of the ready check.
class ReadySink final : public runtime::RequestSink {
 public:
  explicit ReadySink(Loop& loop) : loop_(loop) {}
  void on_sent(TimeNs) override {}
  void on_first_byte(TimeNs) override {}
  void on_tokens(const record::TokenEvent&, std::string_view) override {}
  void on_end(const runtime::Outcome& outcome) override {
    result = outcome;
    loop_.stop();
  }
  std::optional<runtime::Outcome> result;

 private:
  Loop& loop_;
};

class HttpBench final : public BenchTarget {
 public:
  HttpBench(const BenchServeOptions& options, Discovery found, token::TokenizerPtr tokenizer,
            loadgen::HttpTargetOptions target)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        endpoint_(target.endpoint_or_default()),
        loop_(platform::make_real_loop()) {
    target_ = loadgen::make_http_target(std::move(target), *loop_);
    model_ = std::move(found.model);
  }

  Loop& loop() override { return *loop_; }
  runtime::Target& target() override { return *target_; }
  PlanContext context() const override {
    return {.target = target_->info(),
            .endpoint = endpoint_,
            .tokenizer_name = tokenizer_ == nullptr ? "none" : tokenizer_->name(),
            .tokenizer = tokenizer_,
            .token_ids = options_.prompt_token_ids};
  }

  Status ready_check() override {
    if (options_.ready_check_timeout_sec == 0.0) return {};
    const TimeNs deadline = loop_->now() + from_seconds(options_.ready_check_timeout_sec.value_or(0));
    for (;;) {
      const runtime::Outcome outcome = one_request();
      if (outcome.error_class == record::ErrorClass::none) return {};
      if (loop_->now() >= deadline) {
        return fail(ErrorKind::unreachable,
                    fmt::format("{}{} does not answer as an OpenAI-compatible stream: {} ({}); check --base-url, "
                                "--endpoint, --model and --backend",
                                options_.url(), endpoint_, outcome.error.empty() ? "no reason given" : outcome.error,
                                record::to_string(outcome.error_class)));
      }
      loop_->at(std::min(deadline, loop_->now() + kReadyPause), [this] { loop_->stop(); });
      loop_->run();
    }
  }

  void describe_stamps(record::ClientAudit& audit) const override {
    const loadgen::HttpTargetStats stats = target_->stats();
    audit.kernel_stamps = stats.stamped_reads > 0 && stats.unstamped_reads == 0;
    audit.stamp_uncertainty = stats.stamp_uncertainty_ns;
  }

 private:
  runtime::Outcome one_request() {
    record::RequestSpec spec;
    spec.request_id = fmt::format("ready-check-{}", ++checks_);
    spec.class_name = "ready-check";
    if (options_.backend == "openai-chat")
      spec.prompt = std::vector<record::ChatMessage>{{"user", "Ready?"}};
    else
      spec.prompt = std::string("Ready?");
    spec.output_len = 1;
    spec.sampling.max_tokens = 1;
    ReadySink sink(*loop_);
    target_->prepare(std::span(&spec, 1));
    const Ticket ticket = target_->submit(spec, sink);
    const TimerId limit = loop_->at(loop_->now() + kReadyTimeout,
                                    [&] { target_->cancel(ticket, record::ErrorClass::first_token_timeout); });
    while (!sink.result) loop_->run();
    loop_->cancel(limit);
    return *sink.result;
  }

  const BenchServeOptions& options_;
  token::TokenizerPtr tokenizer_;
  std::string endpoint_, model_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<loadgen::HttpTarget> target_;
  int checks_ = 0;
};

/// With --ready-check-timeout-sec a server that is not there yet is waited for.
Result<Discovery> discover_patiently(const http::Url& url, const std::vector<http::Header>& headers,
                                     const BenchServeOptions& o) {
  const TimeNs deadline = platform::monotonic_now() + from_seconds(o.ready_check_timeout_sec.value_or(0));
  for (;;) {
    auto found = discover(url, headers, o);
    if (found || platform::monotonic_now() + kReadyPause > deadline) return found;
    std::this_thread::sleep_for(std::chrono::nanoseconds(kReadyPause));
  }
}

}  // namespace

Result<std::unique_ptr<BenchTarget>> connect_http(const BenchServeOptions& options) {
  TS_TRY(const http::Url url, http::parse_url(options.url()));
  TS_TRY(std::vector<http::Header> headers, request_headers(options));
  const std::vector<http::Header> with_key = loadgen::with_api_key(headers, api_key());
  // A tokenizer that cannot be loaded ends the run before anything is asked of the server.
  token::TokenizerPtr named;
  if (!options.tokenizer.empty()) {
    TS_TRY(named, token::load_tokenizer(options.tokenizer));
  }
  TS_TRY(Discovery found, discover_patiently(url, with_key, options));
  const token::TokenizerPtr tokenizer =
      named != nullptr ? named : choose_tokenizer(url, with_key, options, found.model);
  loadgen::HttpTargetOptions target = target_options(options, found, std::move(headers));
  TS_TRY_STATUS(target.validate());
  return std::make_unique<HttpBench>(options, std::move(found), tokenizer, std::move(target));
}

}  // namespace tokenstone::app
