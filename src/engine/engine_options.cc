#include "engine/engine_options.h"

#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "sched/scheduler_config.h"
#include "token/tokenizer.h"

namespace tokenstone::engine {
namespace {

constexpr std::uint32_t kMaxThreads = 256;
constexpr std::uint32_t kMaxBatch = 1u << 20;

class Faults {
 public:
  void one_of(const std::string& field, const std::string& value, const std::vector<std::string>& allowed) {
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
    const auto near = nearest_name(value, allowed);
    add(field, fmt::format("expected {}, found '{}'{}", join(allowed, ", "), value,
                           near ? fmt::format("; did you mean '{}'?", *near) : std::string{}));
  }
  void within(const std::string& field, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
    if (value >= low && value <= high) return;
    add(field, fmt::format("expected {} to {}, found {}; give the nearest of them, {}", low, high, value,
                           std::clamp(value, low, high)));
  }
  void add(const std::string& field, const std::string& text) {
    found_.push_back({ErrorKind::usage, fmt::format("--{}: {}", field, text), field});
  }
  std::vector<Error> take() { return std::move(found_); }

 private:
  std::vector<Error> found_;
};

void check_words(const EngineOptions& options, Faults& faults) {
  if (options.model.empty()) faults.add("model", "expected a built-in shape or a path, found nothing; try tiny-15m");
  faults.one_of("load-format", options.load_format, {"auto", "dummy"});
  if (options.dtype == "float16" || options.dtype == "half") {
    faults.add("dtype", "float16 is not computed here; use float32 or bfloat16 (auto runs float16 files as float32)");
  } else {
    faults.one_of("dtype", options.dtype, {"auto", "float32", "bfloat16"});
  }
  if (const auto preset = sched::preset(options.variant); !preset) faults.add("variant", preset.error().message);
  if (options.chat_template_family.empty()) return;
  if (const auto family = token::parse_chat_family(options.chat_template_family); !family)
    faults.add("chat-template-family", family.error().message);
}

void check_numbers(const EngineOptions& options, Faults& faults) {
  if (options.block_size != 16 && options.block_size != 32 && options.block_size != 64 && options.block_size != 128)
    faults.add("block-size", fmt::format("expected 16, 32, 64 or 128, found {}; 16 suits most", options.block_size));
  if (options.threads != 0) faults.within("threads", options.threads, 1, kMaxThreads);
  faults.within("max-num-seqs", options.max_num_seqs, 1, kMaxBatch);
  faults.within("max-num-batched-tokens", options.max_num_batched_tokens, 1, kMaxBatch);
  if (options.max_num_batched_tokens < options.max_num_seqs)
    faults.add(
        "max-num-batched-tokens",
        fmt::format("expected at least max-num-seqs, {}, so that each sequence gets its token, found {}; raise it or "
                    "lower --max-num-seqs",
                    options.max_num_seqs, options.max_num_batched_tokens));
  if (options.max_model_len && *options.max_model_len < 2)
    faults.add("max-model-len", fmt::format("expected at least 2 tokens, found {}", *options.max_model_len));
  if (options.kv_cache_memory == 0)
    faults.add("kv-cache-memory", "expected a number of bytes above 0; the default is 256 MiB");
  if (!options.enable_chunked_prefill)
    faults.add("enable-chunked-prefill", "whole-prompt prefill is not built yet; leave it on");
}

}  // namespace

std::vector<Error> validate(const EngineOptions& options) {
  Faults faults;
  check_words(options, faults);
  check_numbers(options, faults);
  return faults.take();
}

std::uint32_t resolved_threads(const EngineOptions& options) {
  if (options.threads != 0) return options.threads;
  const std::uint32_t cpus = std::thread::hardware_concurrency();
  return std::clamp(cpus, 2u, kMaxThreads) - 1;
}

}  // namespace tokenstone::engine
