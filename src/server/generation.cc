#include "server/generation.h"

#include "server/api_error.h"

namespace tokenstone::server {
namespace {

constexpr std::string_view kJson = "application/json";
const ApiError kEngineFailed{500, "the engine could not finish this request; see the server's log", {}};

}  // namespace

Generation::Generation(Setup setup)
    : setup_(std::move(setup)),
      writer_(setup_.identity),
      choices_(setup_.prompt_tokens.size()),
      unfinished_(choices_.size()) {
  setup_.echoes.resize(choices_.size());
  for (std::size_t i = 0; i < choices_.size(); ++i) choices_[i].usage.prompt = setup_.prompt_tokens[i];
  if (setup_.stream) return;
  texts_.resize(choices_.size());
  for (std::size_t i = 0; i < choices_.size(); ++i) texts_[i].text = setup_.echoes[i];
}

void Generation::accepted(std::string& out) {
  if (setup_.stream) append_stream_head(out, setup_.style);
}

void Generation::refused(std::string& out, const Error& error) const {
  const ApiError refusal = to_api_error(error);
  append_answer(out, setup_.style, refusal.status, kJson, error_body(refusal),
                refusal.status == 429 ? "retry-after: 1\r\n" : "");
}

void Generation::observe(Choice& choice, const EngineEvent& event, ServerMetrics& metrics) const {
  choice.usage.completion = event.timing.output_tokens;
  choice.usage.cached = event.timing.cached_tokens;
  if (event.tokens > 0) {
    if (choice.first_token == kUnknownTime) {
      choice.first_token = event.at;
      metrics.first_token(event.at - setup_.received);
    } else {
      metrics.next_tokens(event.at - choice.last_token);
    }
    choice.last_token = event.at;
  }
  if (event.finished) metrics.finished(event.timing, setup_.received, choice.first_token, event.reason);
}

bool Generation::take(std::string& out, const EngineEvent& event, std::string_view text, ServerMetrics& metrics) {
  observe(choices_[event.index], event, metrics);
  failed_ = failed_ || event.reason == sched::FinishReason::error;
  if (setup_.stream) {
    stream_output(out, event, text);
  } else {
    ChoiceText& choice = texts_[event.index];
    choice.text += text;
    choice.reason = event.reason;
    choice.stop_reason = event.stop_reason;
  }
  if (!event.finished || --unfinished_ > 0) return false;
  finish(out);
  return true;
}

void Generation::stream_output(std::string& out, const EngineEvent& event, std::string_view text) {
  Choice& choice = choices_[event.index];
  event_.clear();
  if (!choice.begun && setup_.identity.chat) {
    UsageCounts before = choice.usage;
    before.completion = 0;
    writer_.append_role_event(event_, event.index, before);
    append_piece(out, setup_.style, event_);
    event_.clear();
  }
  std::string with_echo;
  if (!choice.begun && !setup_.echoes[event.index].empty()) {
    with_echo = setup_.echoes[event.index];
    with_echo += text;
    text = with_echo;
  }
  choice.begun = true;
  writer_.append_delta_event(event_, ChoiceDelta{event.index, text, event.reason, event.stop_reason}, choice.usage);
  append_piece(out, setup_.style, event_);
}

UsageCounts Generation::total() const {
  UsageCounts sum;
  for (const Choice& choice : choices_) {
    sum.prompt += choice.usage.prompt;
    sum.completion += choice.usage.completion;
    sum.cached += choice.usage.cached;
  }
  return sum;
}

void Generation::finish(std::string& out) {
  if (!setup_.stream) {
    if (failed_)
      append_answer(out, setup_.style, 500, kJson, error_body(kEngineFailed));
    else
      append_answer(out, setup_.style, 200, kJson, writer_.body(texts_, total()));
    return;
  }
  if (failed_) append_piece(out, setup_.style, "data: " + error_body(kEngineFailed) + "\n\n");
  event_.clear();
  if (setup_.include_usage) {
    writer_.append_usage_event(event_, total());
    append_piece(out, setup_.style, event_);
    event_.clear();
  }
  ResponseWriter::append_done_event(event_);
  append_piece(out, setup_.style, event_);
  append_stream_end(out, setup_.style);
}

}  // namespace tokenstone::server
