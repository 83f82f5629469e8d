// A fixed, synthetic run for the tests of judge, report and store: 1,200 planned requests at 12 req/s, three of which
// failed. Every time follows from the request's number by integer arithmetic, so the run is the same on every machine.
#pragma once

#include "record/run.h"

namespace tokenstone::testing {

inline record::RequestRecord answered_request(std::uint32_t index, TimeNs sent, TimeNs ttft, TimeNs gap, int tokens) {
  record::RequestRecord r;
  r.index = index;
  r.request_id = "req-" + std::to_string(index);
  r.class_name = index % 2 == 0 ? "chat" : "generate";
  r.intended = sent - 20 * kMicrosecond;
  r.sent = sent;
  r.first_byte = sent + ttft - 50 * kMicrosecond;
  for (int i = 0; i < tokens; ++i) {
    const TimeNs arrived = sent + ttft + i * gap;
    r.events.push_back({arrived, arrived + 15 * kMicrosecond, 1, record::TokenKind::text, false});
  }
  if (tokens > 0) {
    r.first_token = r.events.front().arrived;
    r.last_token = r.events.back().arrived;
  }
  r.finished = (tokens > 0 ? r.last_token : sent + ttft) + 100 * kMicrosecond;
  r.prompt_len = r.planned_prompt_len = 32 + index % 97;
  r.output_len = r.planned_output_len = r.usage_output_len = r.event_count = tokens;
  r.output_len_source = record::LengthSource::usage;
  r.finish_reason = "length";
  r.http_status = 200;
  r.text_bytes = static_cast<std::uint64_t>(4 * tokens);
  return r;
}

inline record::RequestRecord failed_request(std::uint32_t index, TimeNs sent, record::ErrorClass error, int status) {
  record::RequestRecord r;
  r.index = index;
  r.request_id = "req-" + std::to_string(index);
  r.class_name = "chat";
  r.intended = r.sent = sent;
  r.finished = sent + 5 * kMillisecond;
  r.planned_prompt_len = 40;
  r.planned_output_len = 20;
  r.error_class = error;
  r.http_status = status;
  r.error =
      status > 0 ? "HTTP " + std::to_string(status) + ": overloaded, \"retry\"" : "connection reset by the server";
  return r;
}

inline record::RunPlan sample_plan() {
  record::RunPlan p;
  p.argv = {"bench", "serve", "--request-rate", "12", "--num-prompts", "1200", "--label", "a, \"b\""};
  p.flags = {{"request-rate", "12"}, {"num-prompts", "1200"}};
  p.plan_hash = "7c1e";
  p.seed = 7;
  p.backend = "openai";
  p.endpoint = "/v1/completions";
  p.target_kind = "http";
  p.target_address = "http://127.0.0.1:8000";
  p.model_id = "org/tiny, \"15m\"";
  p.tokenizer_id = "served";
  p.label = "a, \"b\"";
  p.server_version = "tokenstone 0.1.0";
  p.metadata = {{"commit", "abc123"}};
  p.num_prompts = 1200;
  p.request_rate = 12;
  p.num_warmups = 8;
  p.dataset = {"mixed", "", "lognormal", 1200, 1200, {{"too long", 3}}, false, {}};
  p.goodput = {{"ttft", std::nullopt, 60, "ttft:60"}, {"tpot", std::nullopt, 12, "tpot:12"}};
  p.slo = {{"ttft", 0.99, 500, "ttft.p99<500ms"}};
  p.percentile_metrics = {"ttft", "tpot", "itl"};
  p.metric_percentiles = {99, 99.9};
  p.deviations = {"warm-up of 8 requests, left out of the figures"};
  p.environment = {{"cpu", "Sample CPU, 2 cores"}, {"gpu", "unknown"}, {"kernel", "6.1"}, {"memory", "16 GiB"}};
  p.date = "20250102-030405";
  p.tool_version = "0.1.0";
  return p;
}

inline record::RunResult sample_run() {
  record::RunResult run;
  run.plan = sample_plan();
  for (std::uint32_t i = 0; i < 1200; ++i) {
    const TimeNs sent = 10 * kMillisecond + i * (kSecond / 12);
    if (i == 100 || i == 200) {
      run.requests.push_back(failed_request(i, sent, record::ErrorClass::http_status, 503));
    } else if (i == 300) {
      run.requests.push_back(failed_request(i, sent, record::ErrorClass::reset, 0));
    } else {
      const TimeNs ttft = (20 + static_cast<TimeNs>(i) * 37 % 50) * kMillisecond + i * 100;
      const TimeNs gap = (8 + static_cast<TimeNs>(i) * 13 % 5) * kMillisecond + i * 10;
      run.requests.push_back(answered_request(i, sent, ttft, gap, 10 + static_cast<int>(i * 7 % 40)));
    }
    if (i % 10 != 0) run.audit.send_lag.push_back(20 * kMicrosecond + i * 10);
  }
  run.window_start = run.requests.front().sent;
  for (const auto& r : run.requests) run.window_end = std::max(run.window_end, r.finished);
  for (std::uint32_t i = 0; i < 400; ++i) {
    record::StepRecord s;
    s.step_id = i;
    s.step_start_time = i * 250 * kMillisecond;
    s.step_end_time = s.step_start_time + 9 * kMillisecond + i;
    s.num_decode_sequences = s.running_queue_len = 3 + i % 4;
    s.num_batched_tokens = s.num_decode_sequences;
    s.waiting_queue_len = i % 50 == 0 ? 2 : 0;
    s.blocks_active = 20 + i % 60;
    s.blocks_cached_idle = 10;
    s.blocks_free = 100 - s.blocks_active - s.blocks_cached_idle;
    s.hit_tokens = i % 3 == 0 ? 16 : 0;
    s.query_tokens = i % 3 == 0 ? 64 : 0;
    s.preemptions = i == 77;
    run.steps.push_back(s);
  }
  run.engine_blocks = 100;
  run.engine_block_size = 16;
  run.audit.loop_stall_max = 600 * kMicrosecond;
  run.audit.cpu_share = 0.14;
  run.audit.kernel_stamps = true;
  run.audit.stamp_uncertainty = 900;
  run.phases = {{"connect", 3 * kMillisecond},
                {"warm-up", 800 * kMillisecond},
                {"measure", 100 * kSecond},
                {"drain", kSecond / 2}};
  return run;
}

}  // namespace tokenstone::testing
