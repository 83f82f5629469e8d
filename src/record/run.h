// A run as a whole: what was planned, where it ran, what came back. Everything downstream (metrics, judgement, report)
// is made from a RunResult alone, and a RunResult can be rebuilt from a run folder.
//
// Ownership: plain values. Times: ns relative to the run's start unless a name says otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "record/records.h"

namespace tokenstone::record {

/// One limit of `--goodput` or `--slo`.
struct Limit {
  std::string metric;              ///< ttft, tpot, itl, e2el
  std::optional<double> quantile;  ///< 0.99 for p99; none for a per-request limit (goodput)
  double limit_ms = 0;
  std::string text;  ///< as the person wrote it
};

/// What happened to the rows of a data set or trace.
struct DatasetInfo {
  std::string name;  ///< random, sonnet, sharegpt, custom, azure, mooncake, or the workload's name
  std::string path;  ///< empty: built in
  std::string law;   ///< for built-in length laws: the law's name and parameters
  std::uint64_t rows = 0, used = 0;
  std::map<std::string, std::uint64_t> dropped;  ///< reason -> rows
  bool oversampled = false;
  std::vector<std::string> notes;
};

/// The plan: everything that is needed to repeat the run. plan.json holds it.
struct RunPlan {
  std::vector<std::string> argv;             ///< after `tokenstone`, secrets removed
  std::map<std::string, std::string> flags;  ///< every flag with its effective value
  std::string plan_hash;                     ///< 4 hex digits or more over what makes the schedule
  std::uint64_t seed = 0;
  std::string backend = "openai";  ///< vLLM: backend, endpoint_type
  std::string endpoint;            ///< "/v1/completions"
  std::string target_kind;         ///< http, engine, sim
  std::string target_address;
  std::string model_id, tokenizer_id, label;
  std::string server_version;  ///< "unknown" when the server does not say
  std::vector<std::pair<std::string, std::string>> metadata;
  std::uint64_t num_prompts = 0;
  double request_rate = 0;  ///< infinity: all at once; 0: the schedule's own (trace, stages)
  double burstiness = 1.0;
  std::optional<std::uint32_t> max_concurrency;
  std::optional<TimeNs> duration;                 ///< set: a fixed window; not set: by count
  std::vector<std::pair<double, TimeNs>> stages;  ///< rate, length
  std::uint32_t num_warmups = 0;
  bool ignore_eos = false;
  DatasetInfo dataset;
  std::vector<Limit> goodput;
  std::vector<Limit> slo;
  std::vector<std::string> percentile_metrics;  ///< vLLM's --percentile-metrics
  std::vector<double> metric_percentiles;       ///< vLLM's --metric-percentiles, in percent
  bool save_detailed = false;
  bool virtual_time = false;
  std::vector<std::string> deviations;  ///< defaults of vLLM's from which this run deviates, one line each
  std::vector<std::string> notes;       ///< accepted flags that mean nothing here, and the like
  std::map<std::string, std::string>
      environment;   ///< cpu, cores, memory, kernel, governor, gpu, ...; "unknown" where not known
  std::string date;  ///< YYYYmmdd-HHMMSS
  std::string tool_version;
};

/// The client's own error, measured in the run.
struct ClientAudit {
  std::vector<TimeNs> send_lag;  ///< sent - intended of open-loop requests that had a free slot
  TimeNs loop_stall_max = 0;     ///< longest time the loop was away from its timers
  double cpu_share = 0;          ///< CPU seconds of the client's threads / wall seconds; < 0 unknown
  std::uint32_t max_in_flight = 0;
  double mean_in_flight = 0;
  bool kernel_stamps = false;
  TimeNs stamp_uncertainty = kUnknownTime;  ///< how well the wall-to-monotonic offset is known
  std::uint64_t waited_for_slot = 0;        ///< requests that a concurrency cap held back
  TimeNs slot_wait_max = 0;
};

struct RunResult {
  RunPlan plan;
  std::vector<RequestRecord> requests;  ///< measured requests in planned order, unsent ones included
  std::vector<StepRecord> steps;        ///< embedded and simulated engines only
  std::uint32_t engine_blocks = 0, engine_block_size = 0;
  ClientAudit audit;
  TimeNs window_start = 0, window_end = 0;  ///< by count: first send .. last completion; by duration: the fixed window
  std::vector<std::pair<std::string, TimeNs>> phases;  ///< connect, warm-up, measure, drain with their lengths
  bool interrupted = false;                            ///< Ctrl-C, disk full, killed: a partial result
  std::string interruption;
  bool server_died = false;
  std::string run_dir;  ///< empty: none
};

}  // namespace tokenstone::record
