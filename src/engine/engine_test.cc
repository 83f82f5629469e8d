// The engine whole: scheduler, engine loop, executor and text, on a virtual clock (the forward pass is real).
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "base/virtual_loop.h"
#include "support/check_report.h"
#include "support/shared_data.h"

namespace tokenstone::engine {
namespace {

struct Collected final : runtime::EngineSink {
  std::string text;
  std::vector<TokenId> tokens;
  sched::FinishReason reason = sched::FinishReason::none;
  std::int32_t cached = 0, preemptions = 0;
  void on_output(const runtime::EngineOutput& output) override {
    text += output.text;
    tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end());
    if (!output.finished) return;
    reason = output.reason;
    cached = output.timing->cached_tokens;
    preemptions = output.timing->preemptions;
  }
};

std::unique_ptr<Engine> make_engine(const EngineOptions& options) {
  auto engine = Engine::create(options);
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

/// Runs these requests, all submitted at once, to their ends.
std::vector<Collected> run_all(Engine& engine, const std::vector<runtime::EngineRequest>& requests) {
  VirtualLoop loop;
  const auto engine_loop = engine.start(loop, nullptr);
  std::vector<Collected> sinks(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto seq = engine_loop->submit(requests[i], sinks[i]);
    EXPECT_TRUE(seq.has_value()) << seq.error().message;
  }
  loop.run();
  EXPECT_TRUE(engine_loop->idle());
  return sinks;
}

runtime::EngineRequest greedy(std::vector<TokenId> prompt, std::int32_t max_tokens) {
  runtime::EngineRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  return request;
}

/// The text of stories260K after begin-of-text alone, 257 tokens. Empty when the engine cannot be made.
std::string golden_run(EngineOptions options) {
  options.dtype = "float32";
  options.threads = 2;
  options.max_model_len = 512;  // the GGUF's converter wrote a context of 128
  const auto engine = make_engine(options);
  if (engine == nullptr) return {};
  auto request = greedy({engine->tokenizer().bos()}, 257);
  request.sampling.ignore_eos = true;
  const auto result = run_all(*engine, {request});
  EXPECT_EQ(result[0].tokens.size(), 257u);
  EXPECT_EQ(std::vector<TokenId>(result[0].tokens.begin(), result[0].tokens.begin() + 7),
            (std::vector<TokenId>{403, 407, 261, 378, 432, 383, 286}));
  const std::string text = engine->tokenizer().decode(result[0].tokens);
  // As the continuation of a prompt the text keeps the first word's blank.
  EXPECT_EQ(result[0].text, " " + text);
  return text;
}

/// As run.c prints it: its last line break is not the model's.
std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

TEST(Engine, GoldenTextOfRealWeightsFromBothFormats) {
  const auto models = testing::shared_file("data/models/stories260K.gguf");
  // The weights are reference material beside the project and not part of it; without them there is nothing to compare.
  if (!models) GTEST_SKIP() << "data/models is not there";
  const auto folder = testing::temporary_folder();
  const auto from = models->parent_path();
  std::filesystem::copy_file(from / "stories260K_hf.safetensors", folder / "model.safetensors");
  std::filesystem::copy_file(from / "stories260K_config.json", folder / "config.json");
  const std::string expected = without_last_newline(testing::read_file(from / "stories260K.greedy_n257.txt"));

  const std::string gguf = golden_run({.model = models->string()});
  const std::string hugging_face = golden_run({.model = folder.string(), .tokenizer = models->string()});
  EXPECT_EQ(gguf, expected);
  EXPECT_EQ(hugging_face, expected);
  const int matching = (gguf == expected) + (hugging_face == expected);
  testing::report_check({.id = "spine.golden_text",
                         .value = static_cast<double>(matching),
                         .n = 2,
                         .unit = "formats",
                         .op = ">=",
                         .target = 2,
                         .pass = matching == 2});
}

std::vector<TokenId> random_prompt(std::size_t n, std::uint64_t seed) {
  Rng rng(seed, streams::prompts);
  std::vector<TokenId> tokens(n);
  for (TokenId& t : tokens) t = static_cast<TokenId>(rng.uniform_int(10, 31999));
  return tokens;
}

/// Prompts of several lengths; the last two begin with the same 64 tokens.
std::vector<runtime::EngineRequest> mixed_requests() {
  std::vector<runtime::EngineRequest> requests;
  for (const std::size_t length : {3, 50, 16, 120, 33}) {
    auto request = greedy(random_prompt(length, length), 24);
    request.sampling.ignore_eos = true;
    request.sampling.temperature = length == 16 ? 0.8 : 0.0;
    request.sampling.seed = length;
    requests.push_back(std::move(request));
  }
  for (const std::size_t tail : {5, 20}) {
    auto request = requests[3];
    request.prompt.resize(64);
    const auto rest = random_prompt(tail, 100 + tail);
    request.prompt.insert(request.prompt.end(), rest.begin(), rest.end());
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST(Engine, TokensDoNotDependOnBatchChunksThreadsBlocksPreemptionOrCache) {
  const auto requests = mixed_requests();
  EngineOptions options;
  options.threads = 1;
  options.enable_prefix_caching = false;
  std::vector<std::vector<TokenId>> expected;
  {
    const auto engine = make_engine(options);
    for (const auto& request : requests) expected.push_back(run_all(*engine, {request})[0].tokens);
  }
  const auto same = [&](const EngineOptions& other, const char* what) {
    const auto engine = make_engine(other);
    auto results = run_all(*engine, requests);
    int preemptions = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(results[i].tokens, expected[i]) << what << ", request " << i;
      preemptions += results[i].preemptions;
    }
    return preemptions;
  };
  same(options, "all together");
  options.threads = 2;
  options.block_size = 64;
  options.max_num_seqs = 4;
  options.max_num_batched_tokens = 17;
  same(options, "small chunks, big blocks");
  options.block_size = 16;
  options.enable_prefix_caching = true;
  // 14 blocks: the seven sequences need 31.
  options.kv_cache_memory = 14 * 16 * find_builtin_shape("tiny-15m")->kv_bytes_per_token(Precision::bfloat16);
  EXPECT_GT(same(options, "short of blocks"), 0);
}

TEST(Engine, APrefixHitChangesNothingButTheWork) {
  EngineOptions options;
  options.threads = 2;
  const auto engine = make_engine(options);
  const auto request = greedy(random_prompt(100, 9), 12);
  const auto first = run_all(*engine, {request});
  const auto second = run_all(*engine, {request});
  EXPECT_EQ(first[0].cached, 0);
  EXPECT_EQ(second[0].cached, 96);
  EXPECT_EQ(second[0].tokens, first[0].tokens);
  EXPECT_EQ(second[0].text, first[0].text);
}

TEST(Engine, TextTokensAndSizes) {
  EngineOptions options;
  options.served_model_name = "story";
  options.threads = 1;
  const auto engine = make_engine(options);
  EXPECT_EQ(engine->kv_cache_tokens(), 2427u * 16);
  EXPECT_EQ(engine->max_model_len(), 32768u);
  EXPECT_NEAR(engine->max_concurrency(), 2427.0 / 2048, 1e-9);
  const auto log = engine->start_log();
  EXPECT_EQ(log[2], "KV cache size: 38,832 tokens");
  EXPECT_EQ(log[3], "Maximum concurrency for 32,768 tokens per request: 1.19x");
  EXPECT_NE(log[0].find("story (15,191,712 parameters, random weights), bfloat16, 1 thread"), std::string::npos)
      << log[0];
  ASSERT_TRUE(engine->chat_family().has_value());
  EXPECT_EQ(*engine->chat_family(), token::ChatFamily::chatml);
  const auto result = run_all(*engine, {greedy({5}, 10)});
  EXPECT_EQ(result[0].text, engine->tokenizer().decode(result[0].tokens));
}

TEST(Engine, PromptsAreEncodedAndChecked) {
  EngineOptions options;
  options.threads = 1;
  const auto engine = make_engine(options);
  runtime::RequestSpec request;
  request.prompt = std::string("Once upon a time");
  const auto text = engine->prompt_encoder().encode(request);
  ASSERT_TRUE(text.has_value());
  EXPECT_FALSE(text->empty());
  request.prompt = std::vector<TokenId>{1, 31999};
  EXPECT_EQ(*engine->prompt_encoder().encode(request), (std::vector<TokenId>{1, 31999}));
  request.prompt = std::vector<TokenId>{1, 32000};
  const auto bad = engine->prompt_encoder().encode(request);
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find("32000"), std::string::npos);
  request.prompt = std::vector<runtime::ChatMessage>{{"user", "Hello"}};
  EXPECT_TRUE(engine->prompt_encoder().encode(request).has_value());
}

TEST(Engine, RefusalsSayWhatToDo) {
  const auto refusal = [](const EngineOptions& options) {
    const auto engine = Engine::create(options);
    EXPECT_FALSE(engine.has_value());
    return engine ? std::string{} : engine.error().message;
  };
  EXPECT_NE(refusal({.model = "tiny-15n"}).find("did you mean 'tiny-15m'"), std::string::npos);
  EXPECT_NE(refusal({.model = "/no/such/folder"}).find("/no/such/folder"), std::string::npos);
  EXPECT_NE(refusal({.tokenizer = "/no/such/tokenizer"}).find("/no/such/tokenizer"), std::string::npos);
  const std::string both = refusal({.dtype = "int3", .block_size = 5});
  EXPECT_NE(both.find("int3"), std::string::npos);
  EXPECT_NE(both.find("block-size"), std::string::npos);
}

TEST(TextProcessor, FindsStopStringsAcrossTokens) {
  const auto tokenizer = token::builtin_tokenizer(32000);
  TextProcessor processor(tokenizer);
  sched::SamplingParams sampling;
  const std::string text = tokenizer->decode(std::vector<TokenId>{700, 800, 900});
  const std::string first = tokenizer->token_bytes(700, false);
  // From the last character of the first token into the second.
  sampling.stop = {text.substr(first.size() - 1, 3)};
  processor.start(SeqId{1}, sampling);
  std::string seen;
  bool stopped = false;
  for (const TokenId id : {700, 800, 900}) {
    if (stopped) break;
    auto piece = processor.push(SeqId{1}, id);
    seen += piece.text;
    stopped = piece.stopped;
  }
  EXPECT_TRUE(stopped);
  EXPECT_EQ(seen, text.substr(0, text.find(sampling.stop[0])));
  processor.finish(SeqId{1});
}

}  // namespace
}  // namespace tokenstone::engine
