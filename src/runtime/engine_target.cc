#include "runtime/engine_target.h"

#include <chrono>
#include <future>
#include <variant>

#include "base/check.h"

namespace tokenstone::runtime {
namespace {

using record::ErrorClass;
using sched::FinishReason;

/// What the client side needs of an EngineOutput; owns its text, so that it can cross threads.
struct Arrival {
  TimeNs at = 0;
  std::int32_t tokens = 0;
  std::string text;
  bool finished = false;
  FinishReason reason = FinishReason::none;
  EngineTiming timing;
};

std::string_view finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::abort:
      return "abort";
    case FinishReason::error:
      return "error";
    case FinishReason::none:
      break;
  }
  return "";
}

Outcome success_of(const Arrival& last) {
  const EngineTiming& timing = last.timing;
  Outcome outcome;
  outcome.finished = last.at;
  outcome.finish_reason = finish_name(last.reason);
  outcome.usage_prompt_tokens = timing.prompt_tokens;
  outcome.usage_completion_tokens = timing.output_tokens;
  outcome.cached_tokens = timing.cached_tokens;
  outcome.arrival_time = timing.arrival;
  outcome.scheduled_prefill_time = timing.scheduled_prefill;
  outcome.prefill_end = timing.prefill_end;
  outcome.chunks = timing.chunks;
  outcome.preemptions = timing.preemptions;
  return outcome;
}

/// A refusal, as the server would answer it.
Outcome refusal_of(const Error& error, TimeNs at) {
  Outcome outcome;
  outcome.finished = at;
  outcome.error_class = ErrorClass::http_status;
  outcome.http_status = 400;
  outcome.error = error.message;
  return outcome;
}

/// Both sides of the target. `requests` belongs to the client loop's thread, `sinks` to the engine loop's; what crosses
/// is posted and owns its data. A ticket that the client side has forgotten is the only mark of an ended request, so
/// that a cancellation and an output that pass each other on the way do no harm.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(EngineLoop& engine, Loop& engine_loop, Loop& client_loop)
      : engine_(engine), engine_loop_(engine_loop), client_loop_(client_loop) {}

  bool one_loop() const { return &engine_loop_ == &client_loop_; }
  TimeNs client_now() const { return client_loop_.now(); }

  // Client side.
  void submit(Ticket ticket, RequestSink& sink, Result<EngineRequest> request);
  void cancel(Ticket ticket, ErrorClass reason);
  bool reset_cache();
  void close();

 private:
  struct ClientRequest {
    RequestSink* sink = nullptr;
    bool has_first = false;
  };
  struct TicketSink final : EngineSink {
    TicketSink(Core& c, Ticket t) : core(c), ticket(t) {}
    void on_output(const EngineOutput& output) override { core.on_engine_output(ticket, output); }
    Core& core;
    Ticket ticket;
    SeqId seq;
  };

  /// Runs `fn(core)` on the loop: at once where there is only one.
  template <class Fn>
  void on_engine(Fn fn) {
    if (one_loop()) return fn(*this);
    engine_loop_.post([self = shared_from_this(), fn = std::move(fn)]() mutable { fn(*self); });
  }
  template <class Fn>
  void on_client(Fn fn) {
    if (one_loop()) return fn(*this);
    client_loop_.post([self = shared_from_this(), fn = std::move(fn)]() mutable { fn(*self); });
  }

  // Engine side.
  void engine_submit(Ticket ticket, EngineRequest request);
  void engine_cancel(Ticket ticket);
  void on_engine_output(Ticket ticket, const EngineOutput& output);

  // Either side.
  void refuse_soon(Ticket ticket, Error error);

  // Client side.
  void arrive(Ticket ticket, const Arrival& arrival);
  void end(Ticket ticket, const Outcome& outcome);

  EngineLoop& engine_;
  Loop& engine_loop_;
  Loop& client_loop_;
  std::unordered_map<Ticket, ClientRequest> requests_;
  std::unordered_map<Ticket, std::unique_ptr<TicketSink>> sinks_;
};

void Core::submit(Ticket ticket, RequestSink& sink, Result<EngineRequest> request) {
  requests_.emplace(ticket, ClientRequest{.sink = &sink});
  sink.on_sent(client_now());
  if (!requests_.contains(ticket)) return;  // cancelled in on_sent
  if (!request) return refuse_soon(ticket, std::move(request).error());
  on_engine([ticket, r = *std::move(request)](Core& core) mutable { core.engine_submit(ticket, std::move(r)); });
}

void Core::engine_submit(Ticket ticket, EngineRequest request) {
  auto sink = std::make_unique<TicketSink>(*this, ticket);
  const Result<SeqId> submitted = engine_.submit(std::move(request), *sink);
  if (!submitted) return refuse_soon(ticket, submitted.error());
  sink->seq = *submitted;
  sinks_.emplace(ticket, std::move(sink));
}

/// Never from inside `submit`: its caller does not have the ticket yet.
void Core::refuse_soon(Ticket ticket, Error error) {
  client_loop_.post([self = shared_from_this(), ticket, error = std::move(error)] {
    self->end(ticket, refusal_of(error, self->client_now()));
  });
}

void Core::cancel(Ticket ticket, ErrorClass reason) {
  if (!requests_.contains(ticket)) return;
  on_engine([ticket](Core& core) { core.engine_cancel(ticket); });
  Outcome outcome;
  outcome.finished = client_now();
  outcome.error_class = reason;
  outcome.error = "cancelled before its end";
  outcome.finish_reason = finish_name(FinishReason::abort);
  end(ticket, outcome);
}

void Core::engine_cancel(Ticket ticket) {
  const auto node = sinks_.extract(ticket);
  if (!node.empty()) engine_.cancel(node.mapped()->seq);
}

void Core::on_engine_output(Ticket ticket, const EngineOutput& output) {
  Arrival arrival{.at = output.at,
                  .tokens = static_cast<std::int32_t>(output.tokens.size()),
                  .text = std::string(output.text),
                  .finished = output.finished,
                  .reason = output.reason,
                  .timing = *output.timing};
  // The sink whose method called this dies with the function; nothing touches it afterwards.
  auto spent = output.finished ? sinks_.extract(ticket) : decltype(sinks_)::node_type{};
  on_client([ticket, arrival = std::move(arrival)](Core& core) { core.arrive(ticket, arrival); });
}

void Core::arrive(Ticket ticket, const Arrival& arrival) {
  const auto found = requests_.find(ticket);
  if (found == requests_.end()) return;
  RequestSink& sink = *found->second.sink;
  if (arrival.tokens > 0 || !arrival.text.empty()) {
    if (!std::exchange(found->second.has_first, true)) sink.on_first_byte(arrival.at);
    if (!requests_.contains(ticket)) return;  // cancelled in on_first_byte
    sink.on_tokens({.arrived = arrival.at, .parsed = client_now(), .tokens = arrival.tokens}, arrival.text);
  }
  if (arrival.finished) end(ticket, success_of(arrival));
}

void Core::end(Ticket ticket, const Outcome& outcome) {
  const auto node = requests_.extract(ticket);
  if (!node.empty()) node.mapped().sink->on_end(outcome);
}

bool Core::reset_cache() {
  if (one_loop()) return engine_.reset_prefix_cache();
  auto answer = std::make_shared<std::promise<bool>>();
  std::future<bool> done = answer->get_future();
  on_engine([answer](Core& core) { answer->set_value(core.engine_.reset_prefix_cache()); });
  constexpr std::chrono::seconds patience{
      10};  // many steps; an engine whose loop stands still is not waited for for ever
  return done.wait_for(patience) == std::future_status::ready && done.get();
}

void Core::close() {
  requests_.clear();
  on_engine([](Core& core) {
    for (const auto& [ticket, sink] : core.sinks_) core.engine_.cancel(sink->seq);
    core.sinks_.clear();
  });
}

class EngineTarget final : public Target {
 public:
  EngineTarget(TargetInfo info, EngineLoop& engine, Loop& engine_loop, Loop& client_loop, const PromptEncoder* encoder)
      : info_(std::move(info)), encoder_(encoder), core_(std::make_shared<Core>(engine, engine_loop, client_loop)) {}
  ~EngineTarget() override { core_->close(); }

  TargetInfo info() const override { return info_; }
  void prepare(std::span<const RequestSpec> requests) override;
  Ticket submit(const RequestSpec& request, RequestSink& sink) override {
    const Ticket ticket{++last_ticket_};
    core_->submit(ticket, sink, engine_request(request));
    return ticket;
  }
  void cancel(Ticket ticket, ErrorClass reason) override { core_->cancel(ticket, reason); }
  bool reset_cache() override { return core_->reset_cache(); }

 private:
  struct Prepared {
    std::string request_id;  ///< a spec at the same address may be another one by now
    Result<std::vector<TokenId>> tokens;
  };
  Result<EngineRequest> engine_request(const RequestSpec& request) const;
  Result<std::vector<TokenId>> tokens_of(const RequestSpec& request) const;
  Result<std::vector<TokenId>> encode(const RequestSpec& request) const;

  TargetInfo info_;
  const PromptEncoder* encoder_;
  std::shared_ptr<Core> core_;
  std::unordered_map<const RequestSpec*, Prepared> prepared_;
  std::uint64_t last_ticket_ = 0;
};

void EngineTarget::prepare(std::span<const RequestSpec> requests) {
  prepared_.clear();
  for (const RequestSpec& request : requests)
    if (!std::holds_alternative<std::vector<TokenId>>(request.prompt))
      prepared_.emplace(&request, Prepared{request.request_id, encode(request)});
}

Result<EngineRequest> EngineTarget::engine_request(const RequestSpec& request) const {
  TS_TRY(std::vector<TokenId> prompt, tokens_of(request));
  return EngineRequest{.request_id = request.request_id, .prompt = std::move(prompt), .sampling = request.sampling};
}

Result<std::vector<TokenId>> EngineTarget::tokens_of(const RequestSpec& request) const {
  if (const auto* tokens = std::get_if<std::vector<TokenId>>(&request.prompt)) return *tokens;
  const auto found = prepared_.find(&request);
  if (found != prepared_.end() && found->second.request_id == request.request_id) return found->second.tokens;
  return encode(request);
}

Result<std::vector<TokenId>> EngineTarget::encode(const RequestSpec& request) const {
  if (encoder_ != nullptr) return encoder_->encode(request);
  return usage_error("this target takes prompts as token ids; give it a tokenizer or prompts of token ids", "prompt");
}

}  // namespace

std::unique_ptr<Target> make_engine_target(TargetInfo info, EngineLoop& engine, Loop& engine_loop, Loop& client_loop,
                                           const PromptEncoder* encoder) {
  return std::make_unique<EngineTarget>(std::move(info), engine, engine_loop, client_loop, encoder);
}

}  // namespace tokenstone::runtime
