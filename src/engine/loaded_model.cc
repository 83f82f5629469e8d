#include "engine/loaded_model.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "modelfile/model.h"

namespace tokenstone::engine {
namespace {

namespace fs = std::filesystem;

Result<LoadedModel> load_builtin(const ModelShape& shape, const EngineOptions& options) {
  LoadedModel model;
  model.shape = shape;
  model.builtin = model.random_weights = true;
  model.weights = make_random_weights(shape, options.seed);
  if (options.tokenizer.empty()) {
    model.tokenizer = token::builtin_tokenizer(shape.vocab);
  } else {
    TS_TRY(model.tokenizer, token::load_tokenizer(options.tokenizer));
  }
  return model;
}

Result<token::TokenizerPtr> tokenizer_of(const modelfile::ModelFile& file, const EngineOptions& options) {
  if (!options.tokenizer.empty()) return token::load_tokenizer(options.tokenizer);
  if (file.format == "gguf") return token::tokenizer_from_gguf(file);
  const fs::path path(options.model);
  return token::load_tokenizer(fs::is_directory(path) ? path : path.parent_path());
}

Result<LoadedModel> load_file(const EngineOptions& options) {
  TS_TRY(const auto file, modelfile::load_model(options.model));
  LoadedModel model;
  TS_TRY(model.shape, shape_from_config(file->config));
  model.precision = natural_precision(*file);
  model.random_weights = options.load_format == "dummy";
  if (model.random_weights) {
    model.weights = make_random_weights(model.shape, options.seed);
  } else {
    TS_TRY(model.weights, make_file_weights(model.shape, file));
  }
  TS_TRY(model.tokenizer, tokenizer_of(*file, options));
  model.chat_family = token::recognise_chat_template(model.tokenizer->chat_template());
  return model;
}

Error unknown_model(const std::string& name) {
  const auto names = builtin_shape_names();
  const auto near = nearest_name(name, names);
  return {ErrorKind::usage,
          fmt::format("model: expected a path or one of {}, found '{}', which is neither{}", join(names, ", "), name,
                      near ? fmt::format("; did you mean '{}'?", *near) : std::string{"; check the path"}),
          "model"};
}

/// Ids above the model's vocabulary would have no embedding.
Status check_vocabulary(const LoadedModel& model) {
  if (model.tokenizer->vocab_size() <= model.shape.vocab) return {};
  return usage_error(
      fmt::format("tokenizer {}: expected at most {} tokens, as the model has, found {}; use the model's own "
                  "tokenizer",
                  model.tokenizer->name(), model.shape.vocab, model.tokenizer->vocab_size()),
      "tokenizer");
}

void add_end_tokens(LoadedModel& model) {
  for (const TokenId id : model.tokenizer->eos())
    if (std::find(model.shape.eos.begin(), model.shape.eos.end(), id) == model.shape.eos.end())
      model.shape.eos.push_back(id);
}

}  // namespace

Result<LoadedModel> load_for_engine(const EngineOptions& options) {
  const auto builtin = find_builtin_shape(options.model);
  std::error_code ignored;
  if (!builtin && !fs::exists(options.model, ignored)) return std::unexpected(unknown_model(options.model));
  TS_TRY(LoadedModel model, builtin ? load_builtin(*builtin, options) : load_file(options));
  TS_TRY_STATUS(check_vocabulary(model));
  add_end_tokens(model);
  if (options.dtype == "float32") model.precision = Precision::float32;
  if (options.dtype == "bfloat16") model.precision = Precision::bfloat16;
  if (!options.chat_template_family.empty()) model.chat_family = token::parse_chat_family(options.chat_template_family);
  return model;
}

}  // namespace tokenstone::engine
