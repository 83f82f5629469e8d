#include "record/metric_table.h"

namespace tokenstone::record {
namespace {

using enum MetricKind;
using enum Direction;

constexpr MetricDescriptor kTable[] = {
    // Latencies of one request; successful requests only.
    {"ttft", "TTFT", "ms", distribution, lower,
     "Time to first token: from the last byte of the request handed to the kernel to the arrival of the first event "
     "with a token "
     "of any kind (text, reasoning, tool call). Role-only, empty, usage and ping events do not count.",
     "first_token - sent",
     "From the start of the HTTP call (connection set-up and body encoding included) to the first event with a "
     "non-empty choices "
     "list, even if it carries a role only or empty text; stamped after parsing."},
    {"ttft_intended", "TTFT from intended", "ms", distribution, lower,
     "The first token as a user would have felt it: from the instant the plan wanted the request sent, the client's "
     "queue "
     "included.",
     "first_token - intended", ""},
    {"tpot", "TPOT", "ms", distribution, lower,
     "Time per output token after the first: one value per request with more than one output token.",
     "(e2el - ttft) / (output_len - 1)", "The same formula on vLLM's own TTFT and latency."},
    {"itl", "ITL", "ms", distribution, lower,
     "Gaps between successive token-bearing events, pooled over all requests: long answers weigh more. The first token "
     "is not in "
     "it. With several tokens in one event this is the gap between events, not between tokens.",
     "arrived[i] - arrived[i-1]", "The same pooling; gaps between counted events, which may be empty ones."},
    {"itl_per_token", "ITL per token", "ms", distribution, lower,
     "Each gap shared evenly among the tokens of the event that ended it; present when an event carried several tokens "
     "and the "
     "counts are known.",
     "(arrived[i] - arrived[i-1]) / tokens[i], tokens[i] times", ""},
    {"e2el", "E2E", "ms", distribution, lower,
     "End-to-end latency: from the last byte sent to the last token-bearing event; the sum of TTFT and the request's "
     "ITLs.",
     "last_token - sent",
     "From the start of the HTTP call to the last counted event; for chat, before #55508, to the last event of any "
     "kind, usage "
     "included."},
    {"e2el_intended", "E2E from intended", "ms", distribution, lower,
     "End-to-end latency from the instant the plan wanted the request sent.", "last_token - intended", ""},
    {"output_tokens", "output tokens", "tokens", distribution, neither,
     "Output tokens of a request: the server's usage; else our tokenizer's count; else the number of token-bearing "
     "events. The "
     "source is kept (output_len_source).",
     "output_len", "The usage-only event's completion_tokens; else the text tokenized again; else 1."},
    {"prompt_tokens", "prompt tokens", "tokens", distribution, neither,
     "Prompt tokens of a request: the server's usage; else the plan's count.", "prompt_len",
     "usage.prompt_tokens when present, else the client's count."},
    {"queue", "client queue", "ms", distribution, lower,
     "How long a request waited in the client for a free slot or a late timer; all requests that were sent.",
     "sent - intended", "queue_times of newer versions: the wait for the concurrency permit."},
    {"connect", "connect", "ms", distribution, lower,
     "Set-up of connections, for the requests that caused one. Never inside TTFT.", "connect_ns",
     "Inside TTFT, not reported apart."},
    {"send_lag", "send lag", "ms", distribution, lower,
     "The generator's own lateness: open-loop requests that had a free slot.", "sent - intended", ""},
    // Counts.
    {"duration", "window", "s", scalar, neither,
     "Length of the window over which rates are taken: by count from the first send to the last completion; by "
     "duration the "
     "fixed window.",
     "window_end - window_start", "From just before the first arrival delay to the end of all requests."},
    {"completed", "completed", "requests", scalar, higher, "Requests that ended well.", "count", "The same."},
    {"failed", "failed", "requests", scalar, lower,
     "Requests that were sent, or tried, and failed; by class in errors. completed + failed + unsent = planned.",
     "count", "The same."},
    {"unsent", "unsent", "requests", scalar, lower, "Planned requests that were never sent.", "count", ""},
    {"completed_in_window", "in window", "requests", scalar, higher, "Requests that ended well inside the window.",
     "count", ""},
    {"completed_in_drain", "in drain", "requests", scalar, neither,
     "Requests that were sent inside the window and ended well after it; in the latencies, not in the rates.", "count",
     ""},
    {"no_token", "no token", "requests", scalar, lower,
     "Requests that ended well without any token: they have no TTFT.", "count", "Counted with a TTFT of 0."},
    {"total_input_tokens", "input tokens", "tokens", scalar, neither, "Prompt tokens of the completed requests.",
     "sum of prompt_len", "The same."},
    {"total_output_tokens", "output tokens", "tokens", scalar, neither,
     "Output tokens of the completed requests, as received, never as asked.", "sum of output_len", "The same."},
    // Rates over the window.
    {"offered_rate", "offered", "req/s", scalar, neither,
     "The rate that was asked for; for stages their mean; for a trace the rate of its time stamps. Not there when all "
     "is sent at "
     "once or in a closed loop.",
     "request_rate", "request_rate"},
    {"request_throughput", "delivered", "req/s", scalar, higher,
     "Requests that ended well inside the window, per second.", "completed_in_window / duration",
     "completed / duration"},
    {"request_goodput", "good", "req/s", scalar, higher,
     "Requests per second that ended well inside the window and within every limit of --goodput. A request without a "
     "value (a "
     "one-token answer has no TPOT) is judged by the other limits; a failed one is never good.",
     "good in window / duration", "The same, with a TPOT of 0 for one-token answers."},
    {"output_token_goodput", "good output", "tok/s", scalar, higher, "Output tokens per second of the good requests.",
     "output tokens of good requests in window / duration", ""},
    {"slo_attainment", "SLO attainment", "%", scalar, higher,
     "Share of all planned requests that were good; failed and unsent ones count as bad.",
     "100 x good / (completed + failed + unsent)", ""},
    {"input_throughput", "input", "tok/s", scalar, higher,
     "Prompt tokens per second of completed requests; by duration those whose first token fell into the window.",
     "input tokens / duration", ""},
    {"output_throughput", "output", "tok/s", scalar, higher,
     "Output tokens per second of completed requests; by duration those whose event fell into the window. Prefill time "
     "is inside: "
     "this is not decode speed.",
     "output tokens / duration", "total_output_tokens / duration"},
    {"total_token_throughput", "total", "tok/s", scalar, higher, "Input and output tokens per second.",
     "input_throughput + output_throughput", "(total_input_tokens + total_output_tokens) / duration"},
    {"max_output_tokens_per_s", "peak output (vLLM)", "tok/s", scalar, higher,
     "vLLM's value: events, not tokens, in the fullest one-second bucket from the first start.", "see vLLM",
     "One count per event at start + ttft and after each gap; one-second buckets from the earliest start of a "
     "successful "
     "request; the largest."},
    {"max_concurrent_requests", "peak concurrency (vLLM)", "requests", scalar, neither,
     "vLLM's value, which counts too high: requests that touch the same second.", "see vLLM",
     "For each one-second bucket the successful requests that touch it, both end buckets included; the largest."},
    {"peak_output_tokens_per_s", "peak output", "tok/s", scalar, higher,
     "Output tokens, by their counts, in the fullest one-second bucket of the window.", "max over seconds", ""},
    {"peak_in_flight", "max in flight", "requests", scalar, neither,
     "Most requests that were open at the same instant, from their stamps.", "max over time of [sent, finished)", ""},
    {"mean_in_flight", "in flight", "requests", scalar, neither, "Open requests, averaged over the window's time.",
     "sum of open time in window / duration", ""},
    {"zero_gap_share", "zero gaps", "%", scalar, neither,
     "Share of ITL gaps that are 0: events that came in one read. A gap of 0 is valid.", "100 x zero gaps / gaps", ""},
    {"multi_token_event_share", "events with several tokens", "%", scalar, neither,
     "Share of events of known count that carried more than one token.", "100 x events with tokens > 1 / events", ""},
    // The engine, from its step records.
    {"engine_queue_mean", "queue mean", "requests", scalar, lower,
     "Waiting requests after planning, averaged over steps.", "mean of waiting_queue_len", ""},
    {"engine_queue_max", "queue max", "requests", scalar, lower, "Most waiting requests after planning.",
     "max of waiting_queue_len", ""},
    {"engine_batch_mean", "batch mean", "requests", scalar, neither, "Running requests, averaged over steps.",
     "mean of running_queue_len", ""},
    {"engine_kv_free_min", "KV blocks free min", "%", scalar, neither,
     "Least share of blocks that no running request holds; blocks with idle cache are free, as in vLLM.",
     "100 x min((blocks_free + blocks_cached_idle) / blocks)", ""},
    {"engine_prefix_hits", "prefix hits", "%", scalar, higher,
     "Share of looked-up prompt tokens found in the prefix cache.", "100 x sum of hit_tokens / sum of query_tokens",
     ""},
    {"engine_preemptions", "preemptions", "", scalar, lower, "Times a running request lost its blocks.",
     "sum of preemptions", ""},
    {"engine_step_mean", "step", "ms", scalar, lower, "Mean length of an engine step.",
     "mean of step_end_time - step_start_time", ""},
};

bool is_statistic(std::string_view prefix) {
  if (prefix == "mean" || prefix == "median" || prefix == "std" || prefix == "min" || prefix == "max") return true;
  return prefix.size() > 1 && prefix[0] == 'p' && prefix.find_first_not_of("0123456789.", 1) == std::string_view::npos;
}

}  // namespace

std::string_view to_string(Direction direction) {
  return direction == lower ? "lower" : direction == higher ? "higher" : "neither";
}

std::span<const MetricDescriptor> metric_table() { return kTable; }

const MetricDescriptor* find_metric(std::string_view key) {
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const auto& row) { return row.key == key; });
  return found == std::end(kTable) ? nullptr : &*found;
}

const MetricDescriptor* metric_of_key(std::string_view key) {
  if (key == "e2e") key = "e2el";
  if (const MetricDescriptor* exact = find_metric(key)) return exact;
  const std::size_t bar = key.find('_');
  if (bar == std::string_view::npos || !is_statistic(key.substr(0, bar))) return nullptr;
  std::string_view rest = key.substr(bar + 1);
  if (rest.ends_with("_ms")) rest.remove_suffix(3);
  return find_metric(rest);
}

}  // namespace tokenstone::record
