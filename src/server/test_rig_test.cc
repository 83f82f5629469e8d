#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

#include "base/text.h"
#include "engine/text_processor.h"
#include "platform/real_loop.h"
#include "server/test_rig.h"

namespace tokenstone::server::test {

std::vector<TokenId> ByteTokenizer::encode(std::string_view text, const token::EncodeOptions&) const {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string ByteTokenizer::token_bytes(TokenId id, bool) const {
  return id >= 0 && id < kEnd ? std::string(1, static_cast<char>(id)) : std::string();
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids, bool) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_bytes(id, true);
  return to_valid_utf8(bytes);
}

const sched::StepResult& FakeExecutor::execute(const sched::StepPlan& plan, TimeNs) {
  std::unique_lock lock(mutex_);
  ++begun_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !held_ || permits_ > 0; });
  if (held_) --permits_;
  result_.tokens.clear();
  for (const sched::PlanRow& row : plan.rows) {
    if (!row.samples) {
      result_.tokens.push_back(kNoToken);
    } else if (!script_.empty()) {
      result_.tokens.push_back(script_[row.num_output_tokens % script_.size()]);
    } else {
      const auto position = row.first_position + static_cast<std::uint32_t>(row.tokens.size());
      result_.tokens.push_back(
          'a' + static_cast<TokenId>((static_cast<std::uint32_t>(row.tokens.back()) * 31 + position * 7) % 26));
    }
  }
  return result_;
}

void FakeExecutor::set_script(std::vector<TokenId> script) {
  const std::scoped_lock lock(mutex_);
  script_ = std::move(script);
}

void FakeExecutor::hold() {
  const std::scoped_lock lock(mutex_);
  held_ = true;
  permits_ = 0;
}

void FakeExecutor::permit(int steps) {
  const std::scoped_lock lock(mutex_);
  permits_ += steps;
  changed_.notify_all();
}

void FakeExecutor::release() {
  const std::scoped_lock lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

std::uint64_t FakeExecutor::steps_begun() const {
  const std::scoped_lock lock(mutex_);
  return begun_;
}

void FakeExecutor::wait_for_step(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return begun_ > count; });
}

namespace {

sched::SchedulerConfig scheduler_config(const RigOptions& options) {
  sched::SchedulerConfig config;
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens = 2048;
  config.block_size = options.block_size;
  config.num_blocks = options.num_blocks;
  config.max_model_len = options.max_model_len;
  config.eos_token_ids = {ByteTokenizer::kEnd};
  return config;
}

ServedModel served_model(const RigOptions& options) {
  ServedModel model;
  model.names = {"tiny", "alias"};
  model.root = "/models/tiny";
  model.tokenizer = std::make_shared<ByteTokenizer>();
  model.max_model_len = static_cast<std::int32_t>(options.max_model_len);
  model.vocab_size = 257;
  model.max_num_seqs = options.max_num_seqs;
  model.num_blocks = options.num_blocks;
  model.block_size = options.block_size;
  model.about = {{"dtype", "bfloat16"}};
  return model;
}

void run_on(Loop& loop, std::function<void()> fn) {
  std::promise<void> done;
  loop.post([&] {
    fn();
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace

Rig::Rig(RigOptions options)
    : io_(platform::make_real_loop()), engine_loop_(platform::make_real_loop()), scheduler_(scheduler_config(options)) {
  ServedModel model = served_model(options);
  processor_ = std::make_unique<engine::TextProcessor>(model.tokenizer);
  engine_ = std::make_unique<runtime::EngineLoop>(*engine_loop_, scheduler_, executor_, processor_.get(), nullptr);
  server_ = std::make_unique<HttpServer>(*io_, *engine_, *engine_loop_, std::move(model), options.server, nullptr);
  const auto port = server_->listen();
  EXPECT_TRUE(port.has_value()) << (port ? "" : port.error().message);
  port_ = port.value_or(0);
  engine_thread_ = std::thread([this] { engine_loop_->run(); });
  io_thread_ = std::thread([this] { io_->run(); });
}

Rig::~Rig() {
  executor_.release();
  on_io([this] { server_.reset(); });
  engine_loop_->stop();
  engine_thread_.join();
  io_->stop();
  io_thread_.join();
}

void Rig::on_io(std::function<void()> fn) { run_on(*io_, std::move(fn)); }
void Rig::on_engine(std::function<void()> fn) { run_on(*engine_loop_, std::move(fn)); }

runtime::EngineStats Rig::engine_stats() {
  runtime::EngineStats stats;
  on_engine([&] { stats = engine_->stats(); });
  return stats;
}

ServerCounts Rig::counts() {
  ServerCounts counts;
  on_io([&] { counts = server_->counts(); });
  return counts;
}

bool Rig::eventually(const std::function<bool()>& done) {
  const TimeNs patience = platform::monotonic_now() + 60 * kSecond;
  while (!done()) {
    if (platform::monotonic_now() > patience) return false;
    std::this_thread::yield();
  }
  return true;
}

std::optional<std::string> Answer::header(std::string_view lower_name) const {
  for (const std::string_view line : split(head, '\n')) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && to_lower(line.substr(0, colon)) == lower_name)
      return std::string(trim(line.substr(colon + 1)));
  }
  return std::nullopt;
}

std::vector<std::string> Answer::events() const {
  std::vector<std::string> found;
  std::string_view rest = body;
  while (!rest.empty()) {
    const auto end = rest.find("\n\n");
    if (end == std::string_view::npos || !rest.starts_with("data: ")) {
      ADD_FAILURE() << "not an event: " << rest;
      break;
    }
    found.emplace_back(rest.substr(6, end - 6));
    rest.remove_prefix(end + 2);
  }
  return found;
}

Client::Client(std::uint16_t port, int receive_buffer) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer > 0) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  const timeval patience{.tv_sec = 60, .tv_usec = 0};  // a test that would hang fails instead
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
}

Client::~Client() { close(); }

void Client::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Client::half_close() { shutdown(fd_, SHUT_WR); }

bool Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Client::read_more() {
  char buffer[65536];
  const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  in_.append(buffer, static_cast<std::size_t>(got));
  return true;
}

bool Client::at_end() { return in_.empty() && !read_more(); }

bool Client::receive_until(std::string_view text) {
  while (in_.find(text) == std::string::npos)
    if (!read_more()) return false;
  return true;
}

Answer Client::receive() {
  Answer answer;
  if (!receive_until("\r\n\r\n")) return answer;
  const auto head_end = in_.find("\r\n\r\n") + 4;
  answer.head = in_.substr(0, head_end);
  in_.erase(0, head_end);
  answer.status = static_cast<int>(parse_int(answer.head.substr(9, 3)).value_or(0));
  answer.complete = answer.status == 100;  // no body; the real answer follows
  if (answer.complete) return answer;
  if (answer.header("transfer-encoding") == "chunked") {
    while (receive_until("\r\n")) {
      std::size_t size = 0;
      std::from_chars(in_.data(), in_.data() + in_.size(), size, 16);
      in_.erase(0, in_.find("\r\n") + 2);
      while (in_.size() < size + 2)
        if (!read_more()) return answer;
      answer.body += in_.substr(0, size);
      in_.erase(0, size + 2);
      if (size == 0) {
        answer.complete = true;
        return answer;
      }
    }
    return answer;
  }
  if (const auto length = answer.header("content-length")) {
    const auto size = static_cast<std::size_t>(parse_int(*length).value_or(0));
    while (in_.size() < size)
      if (!read_more()) return answer;
    answer.body = in_.substr(0, size);
    in_.erase(0, size);
  } else {
    while (read_more()) {
    }
    answer.body = std::exchange(in_, {});
  }
  answer.complete = true;
  return answer;
}

std::string post_bytes(const std::string& path, const std::string& body, const std::string& headers) {
  return "POST " + path + " HTTP/1.1\r\nHost: t\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

Answer Client::post(const std::string& path, const std::string& body, const std::string& headers) {
  send(post_bytes(path, body, headers));
  return receive();
}

Answer Client::request(const std::string& method, const std::string& path, const std::string& body,
                       const std::string& headers) {
  send(method + " " + path + " HTTP/1.1\r\nHost: t\r\n" + headers +
       (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body);
  return receive();
}

}  // namespace tokenstone::server::test
