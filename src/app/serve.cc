// `tokenstone serve`: the embedded engine behind HTTP.
//
// The main thread is the I/O thread; the engine has one of its own. Start log and notes go to stderr.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "app/command.h"
#include "app/engine_flags.h"
#include "app/flag_tables.h"
#include "app/version.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/engine_thread.h"
#include "platform/environment.h"
#include "platform/real_loop.h"
#include "platform/signals.h"
#include "record/step_csv.h"
#include "server/http_server.h"

namespace tokenstone::app {
namespace {

struct ServeFlags {
  std::string positional_model, model;
  std::string tokenizer, api_key, steps_csv;
  std::vector<std::string> served_model_name;
  std::string host = "127.0.0.1";
  std::int64_t port = 8000, seed = 0, max_queue = 16384, max_body_mib = 32;
  EngineFlags engine;
};

void add_foreign_serve_flags(FlagSet& flags) {
  flags.accept("uvicorn-log-level", true, "requests are not logged")
      .accept("disable-uvicorn-access-log", false, "requests are not logged")
      .accept("disable-frontend-multiprocessing", false, "there is one process")
      .accept("api-server-count", true, "one I/O thread serves all connections")
      .accept("enable-prompt-tokens-details", false, "usage always names the cached tokens")
      .accept("enable-request-id-headers", false, "an x-request-id that a client sends becomes the answer's id");
  struct Refusal {
    const char* why;
    std::vector<const char*> names;
  };
  static const std::vector<Refusal> refusals = {
      {"the server listens on TCP only", {"uds"}},
      {"browsers' cross-origin rules are a proxy's matter",
       {"allowed-origins", "allowed-methods", "allowed-headers", "allow-credentials"}},
      {"put a proxy in front", {"root-path", "middleware", "ssl-ca-certs", "ssl-cert-reqs"}},
      {"models are read from files, not from a hub",
       {"revision", "code-revision", "tokenizer-revision", "download-dir", "hf-token", "hf-overrides"}},
      {"usage is sent when a request asks for it", {"enable-force-include-usage"}},
      {"answers come from the assistant", {"response-role"}},
  };
  for (const Refusal& refusal : refusals)
    for (const char* name : refusal.names) flags.refuse(name, refusal.why);
}

FlagSet serve_flags(ServeFlags& v) {
  FlagSet flags("serve", "The embedded engine as an OpenAI-compatible server.");
  flags.positional("MODEL", &v.positional_model,
                   "tiny-15m (default), stories-110m, smollm2-135m, a GGUF file or a Hugging Face folder");
  flags.group("Server")
      .add("model", &v.model, "MODEL", "the same as the positional argument")
      .add("served-model-name", &v.served_model_name, "NAME ...",
           "names that requests may use; the first is the answers'")
      .add("tokenizer", &v.tokenizer, "PATH", "a tokenizer other than the model's own")
      .add("host", &v.host, "HOST", "address to listen on; others reach the server only if you change it")
      .add("port", &v.port, "N", "port to listen on; 0: any free one")
      .add("api-key", &v.api_key, "KEY", "ask for this key; VLLM_API_KEY in the environment does the same")
      .add("max-queue", &v.max_queue, "N", "requests that may wait beyond those that can run; more get 429")
      .add("max-body-mib", &v.max_body_mib, "N", "largest request body")
      .add("steps-csv", &v.steps_csv, "FILE", "write a record of every engine step")
      .add("seed", &v.seed, "N", "of random weights, and of requests that bring no seed");
  add_engine_flags(flags, v.engine);
  add_foreign_engine_flags(flags);
  add_foreign_serve_flags(flags);
  return flags;
}

Status check(const ServeFlags& v) {
  if (v.port < 0 || v.port > 65535)
    return usage_error(fmt::format("--port must lie between 0 and 65535; it is {}", v.port), "port");
  if (v.max_queue < 0 || v.max_queue > 1'000'000)
    return usage_error(fmt::format("--max-queue must lie between 0 and 1000000; it is {}", v.max_queue), "max-queue");
  if (v.max_body_mib < 1 || v.max_body_mib > 1024)
    return usage_error(fmt::format("--max-body-mib must lie between 1 and 1024; it is {}", v.max_body_mib),
                       "max-body-mib");
  if (v.seed < 0) return usage_error(fmt::format("--seed must be 0 or more; it is {}", v.seed), "seed");
  for (const std::string& name : v.served_model_name)
    if (name.empty())
      return usage_error("--served-model-name must not be empty; leave it out to serve under the model's own name",
                         "served-model-name");
  if (!v.model.empty() && !v.positional_model.empty() && v.model != v.positional_model)
    return usage_error(fmt::format("the model is given twice, as '{}' and as --model '{}'; give one of them",
                                   v.positional_model, v.model),
                       "model");
  return {};
}

Result<engine::EngineOptions> engine_options(const ServeFlags& v) {
  TS_TRY(engine::EngineOptions options, v.engine.resolve());
  if (!v.positional_model.empty()) options.model = v.positional_model;
  if (!v.model.empty()) options.model = v.model;
  options.tokenizer = v.tokenizer;
  if (!v.served_model_name.empty()) options.served_model_name = v.served_model_name.front();
  options.seed = static_cast<std::uint64_t>(v.seed);
  return options;
}

server::ServedModel served_model(const engine::Engine& engine, const ServeFlags& v) {
  server::ServedModel model;
  model.names = v.served_model_name;
  if (model.names.empty()) model.names.push_back(engine.served_model_name());
  model.root = engine.options().model;
  model.tokenizer = engine.shared_tokenizer();
  model.chat_family = engine.chat_family();
  model.max_model_len = static_cast<std::int32_t>(engine.max_model_len());
  model.vocab_size = static_cast<std::int32_t>(engine.shape().vocab);
  model.max_num_seqs = engine.options().max_num_seqs;
  model.num_blocks = engine.num_blocks();
  model.block_size = engine.block_size();
  model.prefix_caching = engine.options().enable_prefix_caching;
  model.cache_dtype = engine::to_string(engine.precision());
  model.seed = static_cast<std::uint64_t>(v.seed);
  model.about = {{"model", model.names.front()},
                 {"dtype", model.cache_dtype},
                 {"variant", engine.options().variant},
                 {"threads", std::to_string(engine.threads())},
                 {"kv_cache_tokens", std::to_string(engine.kv_cache_tokens())}};
  for (const auto& [key, value] : platform::probe_environment()) model.about.emplace_back(key, value);
  return model;
}

server::ServerOptions server_options(const ServeFlags& v) {
  server::ServerOptions options;
  options.host = v.host;
  options.port = static_cast<std::uint16_t>(v.port);
  options.api_key = v.api_key;
  if (const char* key = std::getenv("VLLM_API_KEY"); options.api_key.empty() && key != nullptr) options.api_key = key;
  options.version = kVersion;
  options.max_queue = static_cast<std::uint32_t>(v.max_queue);
  options.max_body_bytes = static_cast<std::size_t>(v.max_body_mib) << 20;
  return options;
}

/// Writes what the engine's steps left, once a second, until the loop ends.
void flush_steps_each_second(Loop& io, record::StepCsvWriter& steps) {
  io.at(io.now() + kSecond, [&io, &steps] {
    if (const Status flushed = steps.flush(); !flushed) fmt::print(stderr, "tokenstone: {}\n", flushed.error().message);
    flush_steps_each_second(io, steps);
  });
}

/// The first signal lets what runs finish, the second ends at once. Returns false when it was cut short.
bool run_until_signalled(Loop& io, server::HttpServer& server) {
  int signals = 0;
  const platform::SignalWatch watch(io, {SIGINT, SIGTERM}, [&](int) {
    if (++signals == 1) {
      fmt::print(stderr, "finishing {} requests; signal again to end at once\n", server.counts().generations);
      return server.drain([&io] { io.stop(); });
    }
    server.stop();
    io.stop();
  });
  io.run();
  return signals < 2;
}

void print_start(const engine::Engine& engine) {
  for (const std::string& line : engine.start_log()) fmt::print(stderr, "{}\n", line);
  for (const std::string& warning : engine.warnings()) fmt::print(stderr, "warning: {}\n", warning);
  if (!engine.chat_family())
    fmt::print(stderr, "warning: chat requests are refused: {}\n", engine.chat_family().error().message);
}

Result<bool> serve(const ServeFlags& v) {
  TS_TRY_STATUS(check(v));
  TS_TRY(const engine::EngineOptions options, engine_options(v));
  platform::block_signals({SIGINT, SIGTERM});
  platform::raise_open_file_limit();
  TS_TRY(const auto engine, engine::Engine::create(options));
  print_start(*engine);
  const std::unique_ptr<Loop> io = platform::make_real_loop();
  std::unique_ptr<record::StepCsvWriter> steps;
  if (!v.steps_csv.empty()) {
    TS_TRY(steps, record::StepCsvWriter::create(v.steps_csv));
    flush_steps_each_second(*io, *steps);
  }
  bool whole = false;
  {
    engine::EngineThread thread(*engine, nullptr);
    thread.loop().post([&loop = thread.engine_loop(), origin = io->now()] { loop.set_step_origin(origin); });
    server::HttpServer server(*io, thread.engine_loop(), thread.loop(), served_model(*engine, v), server_options(v),
                              steps.get());
    TS_TRY([[maybe_unused]] const std::uint16_t port, server.listen());
    fmt::print(stderr, "listening on {}\n", server.url());
    whole = run_until_signalled(*io, server);
  }
  if (steps != nullptr) TS_TRY_STATUS(steps->flush());
  return whole;
}

}  // namespace

FlagSet serve_flag_table() {
  static ServeFlags unread;
  return serve_flags(unread);
}

int run_serve(const Args& args) {
  ServeFlags values;
  FlagSet flags = serve_flags(values);
  const auto parsed = flags.parse(args);
  if (!parsed) return report_error(parsed.error());
  if (parsed->help) {
    std::fputs(flags.help().c_str(), stdout);
    return 0;
  }
  for (const std::string& note : parsed->notes) fmt::print(stderr, "note: {}\n", note);
  const Result<bool> whole = serve(values);
  if (!whole) return report_error(whole.error());
  return *whole ? 0 : 4;
}

}  // namespace tokenstone::app
