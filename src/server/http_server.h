// The OpenAI-compatible front of the engine.
//
// One I/O thread (`io`) does sockets, parsing, tokenising and JSON; the engine runs on its own loop and thread
// (`engine_loop`). Endpoints: POST /v1/completions, /v1/chat/completions, /tokenize, /detokenize, /reset_prefix_cache;
// GET /v1/models, /health, /version, /metrics. Answers and errors follow vLLM (api_response.h, api_error.h, metrics.h).
// Bounds: size of heads and bodies, requests inside the engine (429), bytes that a slow reader leaves unread (then it
// is cut off), idle time of a connection. A client that goes away is noticed at once, and its sequences are freed
// before the next step. Ownership: borrows both loops, the engine and `next_steps`. It may go while the engine still
// runs; the I/O loop must outlive the engine's thread. Threads: the I/O thread, or any while that loop does not run.
// Failure: listen() says what to do; everything later is one request's answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "runtime/engine_loop.h"
#include "server/served_model.h"

namespace tokenstone::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;        ///< 0: any free one
  std::string api_key;              ///< empty: none asked
  std::string version;              ///< for /version
  std::uint32_t max_queue = 16384;  ///< waiting requests beyond those that can run at once; more get 429
  std::size_t max_body_bytes = 32 << 20;
  std::size_t max_unread_stream_bytes = 4 << 20;  ///< of one client, beyond what the kernel buffers
  TimeNs idle_timeout = 120 * kSecond;            ///< no byte moved and no answer pending
};

struct ServerCounts {
  std::size_t connections = 0, generations = 0;
};

class HttpServer {
 public:
  /// `next_steps` gets the engine's step records; may be null. Precondition: the model has a name and a tokenizer.
  HttpServer(Loop& io, runtime::EngineLoop& engine, Loop& engine_loop, ServedModel model, ServerOptions options,
             record::StepSink* next_steps);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Starts to accept; the port it listens on.
  Result<std::uint16_t> listen();
  /// "http://127.0.0.1:8000"; after listen().
  std::string url() const;
  /// Takes no new connection or request, finishes the ones under way, then calls `done`, once.
  void drain(std::function<void()> done);
  /// Cuts every connection and cancels what it asked for.
  void stop();
  ServerCounts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenstone::server
