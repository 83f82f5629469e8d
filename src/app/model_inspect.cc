// tokenstone model inspect PATH: what a model file holds.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "base/text.h"
#include "modelfile/mapped_file.h"
#include "modelfile/model.h"
#include "modelfile/summary.h"
#include "token/tokenizer.h"

namespace tokenstone::app {
namespace {

using Json = nlohmann::ordered_json;
using modelfile::ModelConfig;
using modelfile::ModelFile;
using modelfile::ModelSummary;

constexpr std::size_t kMostNames = 10;
constexpr std::size_t kValueWidth = 60;  // 80 columns less the label's

struct Inspected {
  std::shared_ptr<const ModelFile> model;
  ModelSummary summary;
  Result<token::TokenizerPtr> tokenizer;
};

/// A vocabulary without tensors can be looked into as well, so a GGUF file is opened by its own reader.
Result<std::shared_ptr<const ModelFile>> open_model(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    const auto file = modelfile::MappedFile::open(path);
    if (file && file->text().starts_with("GGUF")) return modelfile::load_gguf(path);
  }
  return modelfile::load_model(path);
}

Result<token::TokenizerPtr> find_tokenizer(const ModelFile& model) {
  if (model.format == "gguf") return token::tokenizer_from_gguf(model);
  const std::filesystem::path path(model.path);
  return token::load_tokenizer(std::filesystem::is_directory(path) ? path : path.parent_path());
}

std::string size_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e6) return fmt::format("{} bytes", format_count(static_cast<std::int64_t>(bytes)));
  return value < 1e9 ? fmt::format("{} MB", format_figure(value / 1e6))
                     : fmt::format("{} GB", format_figure(value / 1e9));
}

std::string count_text(std::uint64_t count) { return format_count(static_cast<std::int64_t>(count)); }

std::string stated(std::uint32_t count) { return count == 0 ? "not stated" : count_text(count); }

void print_row(std::string_view label, std::string_view value) {
  while (value.size() > kValueWidth) {
    std::size_t cut = value.rfind(' ', kValueWidth);
    if (cut == std::string_view::npos || cut == 0) break;  // a path or a name is not broken
    fmt::print("{:<20}{}\n", label, value.substr(0, cut));
    value.remove_prefix(cut + 1);
    label = "";
  }
  fmt::print("{:<20}{}\n", label, value);
}

void print_shape(const ModelConfig& config) {
  print_row("Architecture", config.architecture);
  print_row("Layers", stated(config.num_layers));
  print_row("Hidden size", stated(config.hidden_size));
  print_row("Heads", fmt::format("{} (KV {}, dimension {})", stated(config.num_heads), stated(config.num_kv_heads),
                                 stated(config.head_dim)));
  print_row("Feed-forward", stated(config.intermediate_size));
  print_row("Vocabulary", stated(config.vocab_size));
  print_row("Context",
            config.max_position_embeddings == 0 ? "not stated" : stated(config.max_position_embeddings) + " tokens");
  print_row("RoPE",
            fmt::format("theta {}, {}{}", config.rope_theta, config.rope_interleaved ? "adjacent pairs" : "half-split",
                        config.rope_scaling.empty() ? "" : ", scaling " + config.rope_scaling));
  print_row("Head of the output", config.tie_word_embeddings ? "tied to the embedding" : "its own");
}

void print_figures(const Inspected& found) {
  const ModelSummary& summary = found.summary;
  print_row("Parameters", count_text(summary.total.parameters));
  for (const auto& [dtype, count] : summary.by_dtype)
    print_row(fmt::format("  {}", dtype), fmt::format("{} tensors, {} parameters, {}", count_text(count.tensors),
                                                      count_text(count.parameters), size_text(count.bytes)));
  print_row("Weights", size_text(summary.total.bytes));
  print_row("KV per token", fmt::format("{} in bfloat16, {} in float32", size_text(summary.kv_elements_per_token * 2),
                                        size_text(summary.kv_elements_per_token * 4)));
  if (found.tokenizer)
    print_row("Tokenizer",
              fmt::format("{}, {} tokens", (*found.tokenizer)->name(), count_text((*found.tokenizer)->vocab_size())));
  else
    print_row("Tokenizer", "not usable: " + found.tokenizer.error().message);
}

void print_unknown(const ModelFile& model) {
  if (model.unknown_tensors.empty()) return;
  print_row("Unknown tensors", fmt::format("{} that a Llama does not have:", model.unknown_tensors.size()));
  for (std::size_t i = 0; i < std::min(kMostNames, model.unknown_tensors.size()); ++i)
    print_row("", modelfile::in_quotes(model.unknown_tensors[i]).substr(0, kValueWidth));
  if (model.unknown_tensors.size() > kMostNames)
    print_row("", fmt::format("and {} more", model.unknown_tensors.size() - kMostNames));
}

Json config_json(const ModelConfig& config) {
  return {{"architecture", config.architecture},
          {"name", config.name},
          {"num_hidden_layers", config.num_layers},
          {"hidden_size", config.hidden_size},
          {"num_attention_heads", config.num_heads},
          {"num_key_value_heads", config.num_kv_heads},
          {"head_dim", config.head_dim},
          {"intermediate_size", config.intermediate_size},
          {"vocab_size", config.vocab_size},
          {"max_position_embeddings", config.max_position_embeddings},
          {"rms_norm_eps", config.rms_norm_eps},
          {"rope_theta", config.rope_theta},
          {"rope_scaling", config.rope_scaling},
          {"rope_interleaved", config.rope_interleaved},
          {"tie_word_embeddings", config.tie_word_embeddings},
          {"bos_token_id", config.bos_token_id == kNoToken ? Json() : Json(config.bos_token_id)},
          {"eos_token_ids", config.eos_token_ids},
          {"torch_dtype", config.torch_dtype}};
}

Json count_json(const modelfile::DTypeCount& count) {
  return {{"tensors", count.tensors}, {"parameters", count.parameters}, {"bytes", count.bytes}};
}

Json inspected_json(const Inspected& found) {
  Json json = {
      {"path", found.model->path}, {"format", found.model->format}, {"config", config_json(found.model->config)}};
  json["total"] = count_json(found.summary.total);
  json["dtypes"] = Json::object();
  for (const auto& [dtype, count] : found.summary.by_dtype) json["dtypes"][dtype] = count_json(count);
  json["kv_elements_per_token"] = found.summary.kv_elements_per_token;
  json["tokenizer"] = found.tokenizer
                          ? Json{{"kind", (*found.tokenizer)->name()}, {"vocab_size", (*found.tokenizer)->vocab_size()}}
                          : Json{{"error", found.tokenizer.error().message}};
  json["unknown_tensors"] = found.model->unknown_tensors;
  return json;
}

Result<int> inspect(const Args& args) {
  std::string path;
  std::optional<std::string> json;
  FlagSet flags("model inspect", "What a GGUF file or a Hugging Face folder holds.");
  flags.positional("PATH", &path,
                   "a GGUF file, a .safetensors file with config.json beside it, or a Hugging Face folder");
  flags.add("json", &json, "-", "print JSON on stdout instead of the table; the only value is -");
  TS_TRY(const FlagSet::Parsed parsed, flags.parse(args));
  if (parsed.help) {
    std::fputs(flags.help().c_str(), stdout);
    return 0;
  }
  if (path.empty()) return usage_error("model inspect needs a PATH: a GGUF file or a Hugging Face folder");
  if (json && *json != "-")
    return usage_error(fmt::format("--json takes only - (standard output), not '{}'", *json), "json");
  TS_TRY(const auto model, open_model(path));
  const Inspected found{model, modelfile::summarize(*model), find_tokenizer(*model)};
  if (json) {
    // Names out of a file need not be UTF-8; the writer replaces what is not.
    fmt::print("{}\n", inspected_json(found).dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  print_row("Model", path);
  print_row("Format", model->format);
  print_shape(model->config);
  print_figures(found);
  print_unknown(*model);
  return 0;
}

}  // namespace

int run_model(const Args& args) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h") {
    std::fputs("usage: tokenstone model inspect PATH [--json -]\n", args.empty() ? stderr : stdout);
    return args.empty() ? 1 : 0;
  }
  if (args[0] != "inspect")
    return report_error(
        {ErrorKind::usage, fmt::format("unknown command 'model {}'; expected 'model inspect PATH'", args[0])});
  const auto code = inspect(Args(args.begin() + 1, args.end()));
  return code ? *code : report_error(code.error());
}

}  // namespace tokenstone::app
