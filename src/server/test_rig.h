// What the server's tests share: a real server, scheduler and engine loop on two real loops, over an executor that
// makes up tokens (a pure function of the last token and its position) and can be held between steps; and a plain
// blocking client.
#pragma once

#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/engine_loop.h"
#include "sched/scheduler.h"
#include "server/http_server.h"

namespace tokenstone::server::test {

/// One token per byte; 256 is the end-of-text token, a special one.
class ByteTokenizer final : public token::Tokenizer {
 public:
  static constexpr TokenId kEnd = 256;
  std::vector<TokenId> encode(std::string_view text, const token::EncodeOptions&) const override;
  std::string token_bytes(TokenId id, bool) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  std::size_t vocab_size() const override { return 257; }
  bool is_special(TokenId id) const override { return id == kEnd; }
  TokenId bos() const override { return kNoToken; }
  std::vector<TokenId> eos() const override { return {kEnd}; }
  bool strips_leading_space() const override { return false; }
  std::string name() const override { return "bytes"; }
  std::string chat_template() const override { return {}; }
};

class FakeExecutor final : public runtime::Executor {
 public:
  const sched::StepResult& execute(const sched::StepPlan& plan, TimeNs start) override;
  bool is_real_time() const override { return true; }
  /// The n-th output token of every sequence, from now on; empty: made up.
  void set_script(std::vector<TokenId> script);
  /// From now on a step waits for a permit.
  void hold();
  void permit(int steps);
  void release();
  std::uint64_t steps_begun() const;
  /// Waits until a step has begun beyond `count`.
  void wait_for_step(std::uint64_t count);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int permits_ = 0;
  std::uint64_t begun_ = 0;
  std::vector<TokenId> script_;
  sched::StepResult result_;
};

struct RigOptions {
  std::uint32_t max_num_seqs = 64, num_blocks = 4096, block_size = 16, max_model_len = 4096;
  ServerOptions server{.port = 0, .version = "0.0.1"};
};

class Rig {
 public:
  explicit Rig(RigOptions options = {});
  ~Rig();
  std::uint16_t port() const { return port_; }
  FakeExecutor& executor() { return executor_; }
  HttpServer& server() { return *server_; }
  /// Runs `fn` on the loop's thread and waits for it.
  void on_io(std::function<void()> fn);
  void on_engine(std::function<void()> fn);
  runtime::EngineStats engine_stats();
  ServerCounts counts();
  /// Polls until `done()`; false after a generous while.
  static bool eventually(const std::function<bool()>& done);

 private:
  std::unique_ptr<Loop> io_, engine_loop_;
  sched::Scheduler scheduler_;
  FakeExecutor executor_;
  std::unique_ptr<runtime::OutputProcessor> processor_;
  std::unique_ptr<runtime::EngineLoop> engine_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::thread engine_thread_, io_thread_;
};

struct Answer {
  int status = 0;  ///< 0: the connection ended before an answer
  std::string head, body;
  bool complete = false;
  std::optional<std::string> header(std::string_view lower_name) const;
  std::vector<std::string> events() const;  ///< data of an event stream
};

class Client {
 public:
  explicit Client(std::uint16_t port, int receive_buffer = 0);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  bool send(std::string_view bytes);
  Answer receive();
  /// Reads until this text has come.
  bool receive_until(std::string_view text);
  bool at_end();  ///< blocks until more comes (false) or the server closes (true)
  void close();
  void half_close();
  Answer get(const std::string& path) { return request("GET", path, ""); }
  Answer post(const std::string& path, const std::string& body, const std::string& headers = {});
  Answer request(const std::string& method, const std::string& path, const std::string& body,
                 const std::string& headers = {});

 private:
  bool read_more();
  int fd_;
  std::string in_;
};

std::string post_bytes(const std::string& path, const std::string& body, const std::string& headers = {});

}  // namespace tokenstone::server::test
