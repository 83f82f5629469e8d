// Requests from laws: exact lengths, distinct prompts, reproducible whatever the order; and the text of exact token
// counts.
#include "workload/source.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "workload/greedy_tokenizer.h"
#include "workload/plan_hash.h"

namespace tokenstone::workload {
namespace {

using testing::merging_tokenizer;
using testing::word_tokenizer;

using Ids = std::vector<TokenId>;

std::unique_ptr<RequestSource> source_of(const WorkloadOptions& options, token::TokenizerPtr tokenizer) {
  auto source = make_source(options, std::move(tokenizer));
  if (!source) ADD_FAILURE() << source.error().message;
  return source ? std::move(*source) : nullptr;
}

std::string error_of(const WorkloadOptions& options, token::TokenizerPtr tokenizer = nullptr) {
  const auto source = make_source(options, std::move(tokenizer));
  if (source) return "";
  EXPECT_EQ(source.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(source.error().kind, ErrorKind::usage);
  return source.error().message;
}

WorkloadOptions random_options(std::int64_t input, std::int64_t output, PromptForm form) {
  WorkloadOptions options;
  options.dataset_name = "random";
  options.random_input_len = input;
  options.random_output_len = output;
  options.num_prompts = 50;
  options.form = form;
  options.seeds = Seeds(7);
  return options;
}

TEST(RandomSource, TokenIdsAreExactDistinctAndNeverSpecial) {
  const auto source = source_of(random_options(100, 20, PromptForm::token_ids), word_tokenizer(true));
  std::set<Ids> prompts;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto spec = source->at(i);
    const auto& ids = std::get<Ids>(spec.prompt);
    EXPECT_EQ(ids.size(), 100u);
    EXPECT_EQ(spec.prompt_len, 100);
    EXPECT_FALSE(spec.prompt_len_nominal);
    EXPECT_EQ(spec.output_len, 20);
    EXPECT_EQ(spec.sampling.max_tokens, 20);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 0);
    prompts.insert(ids);
  }
  EXPECT_EQ(prompts.size(), 50u);  // TUN-06
  EXPECT_EQ(source->at(3).request_id, "bench-00000007-3");
  EXPECT_EQ(source->at(3).class_name, "random");
}

TEST(RandomSource, IdsAreDrawnIndependently) {  // vLLM's are consecutive: i, i + 1, ...
  const auto source = source_of(random_options(5000, 1, PromptForm::token_ids), word_tokenizer());
  const auto spec = source->at(0);
  const auto& ids = std::get<Ids>(spec.prompt);
  int consecutive = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) consecutive += ids[i] == ids[i - 1] + 1 ? 1 : 0;
  EXPECT_LT(consecutive, 25);                                         // 5.4 expected
  EXPECT_GT(std::set<TokenId>(ids.begin(), ids.end()).size(), 900u);  // of 932
}

TEST(RandomSource, GoldenIdsOfASeed) {  // DAT-21: a change of the drawing order must be seen
  const auto source = source_of(random_options(4, 1, PromptForm::token_ids), word_tokenizer());
  EXPECT_EQ(std::get<Ids>(source->at(0).prompt), (Ids{59, 547, 929, 526}));
  EXPECT_EQ(std::get<Ids>(source->at(41).prompt), (Ids{135, 403, 732, 856}));
}

TEST(RandomSource, RangeRatioSpreadsBothLengths) {
  WorkloadOptions options = random_options(100, 40, PromptForm::token_ids);
  options.random_range_ratio = R"({"input": 0.5, "output": 0.25})";
  const auto source = source_of(options, word_tokenizer());
  std::set<std::int64_t> inputs, outputs;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const auto spec = source->at(i);
    inputs.insert(spec.prompt_len);
    outputs.insert(spec.output_len);
  }
  EXPECT_EQ(*inputs.begin(), 50);
  EXPECT_EQ(*inputs.rbegin(), 150);
  EXPECT_EQ(*outputs.begin(), 30);
  EXPECT_EQ(*outputs.rbegin(), 50);
}

TEST(RandomSource, PrefixIsSharedByAll) {
  WorkloadOptions options = random_options(10, 1, PromptForm::token_ids);
  options.random_prefix_len = 30;
  const auto source = source_of(options, word_tokenizer());
  const auto one = std::get<Ids>(source->at(0).prompt), other = std::get<Ids>(source->at(1).prompt);
  EXPECT_EQ(one.size(), 40u);
  EXPECT_TRUE(std::equal(one.begin(), one.begin() + 30, other.begin()));
  EXPECT_NE(one, other);
  // A warm-up has the same length and must not bring the shared beginning into the cache.
  const auto warmup = std::get<Ids>(source->warmup(0).prompt);
  EXPECT_EQ(warmup.size(), 40u);
  EXPECT_FALSE(std::equal(one.begin(), one.begin() + 30, warmup.begin()));
}

TEST(RandomSource, TextHasTheAskedLengthAfterEncoding) {  // DAT-01, DAT-22
  for (const auto& tokenizer : {word_tokenizer(), word_tokenizer(true), merging_tokenizer(), merging_tokenizer(true)}) {
    for (const std::int64_t length : {2, 17, 300}) {
      const auto source = source_of(random_options(length, 1, PromptForm::text), tokenizer);
      for (std::uint32_t i = 0; i < 20; ++i) {
        const auto spec = source->at(i);
        const auto ids = tokenizer->encode(std::get<std::string>(spec.prompt), {});
        EXPECT_EQ(static_cast<std::int64_t>(ids.size()), spec.prompt_len);
        EXPECT_EQ(spec.prompt_len, length);
      }
      EXPECT_TRUE(source->info().notes.empty());
    }
  }
}

TEST(RandomSource, LengthOneKeepsARealToken) {  // DAT-03
  const auto tokenizer = word_tokenizer(true);
  const auto source = source_of(random_options(1, 1, PromptForm::text), tokenizer);
  const auto spec = source->at(0);
  EXPECT_FALSE(std::get<std::string>(spec.prompt).empty());
  EXPECT_EQ(spec.prompt_len, 2);  // one more than asked, and said so
  const auto notes = source->info().notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("1 prompts miss the asked length, at most by +1"), std::string::npos);
}

TEST(RandomSource, WithoutATokenizerLengthsAreNominal) {
  const auto source = source_of(random_options(40, 8, PromptForm::text), nullptr);
  std::set<std::string> prompts;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto spec = source->at(i);
    const auto& text = std::get<std::string>(spec.prompt);
    EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 39);
    EXPECT_TRUE(spec.prompt_len_nominal);
    EXPECT_EQ(spec.prompt_len, 40);
    prompts.insert(text);
  }
  EXPECT_EQ(prompts.size(), 50u);
  EXPECT_NE(source->info().notes.at(0).find("nominal"), std::string::npos);
  EXPECT_NE(error_of(random_options(40, 8, PromptForm::token_ids)).find("--tokenizer"), std::string::npos);
}

TEST(RandomSource, ChatFormIsOneUserMessage) {
  const auto source = source_of(random_options(12, 1, PromptForm::chat), word_tokenizer());
  const auto spec = source->at(0);
  const auto& messages = std::get<std::vector<record::ChatMessage>>(spec.prompt);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].role, "user");
  EXPECT_EQ(messages[0].content.size(), 36u);
}

TEST(Source, IsAFunctionOfTheIndexAlone) {  // DAT-10: whatever the order and the threads
  WorkloadOptions options;
  options.workload = "mixed";
  options.scale = 0.05;
  options.seeds = Seeds(11);
  const auto tokenizer = merging_tokenizer();
  const auto forward = source_of(options, tokenizer), threaded = source_of(options, tokenizer);
  std::vector<record::RequestSpec> one(40), two(40);
  for (std::uint32_t i = 0; i < 40; ++i) one[i] = forward->at(i);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 40; i-- > 0;)
        if (i % 4 == t) two[i] = threaded->at(i);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plan_hash(one), plan_hash(two));
}

TEST(Source, NamedWorkloadGivesItsClasses) {
  WorkloadOptions options;
  options.workload = "mixed";
  options.scale = 0.1;
  options.num_prompts = 40;
  options.form = PromptForm::token_ids;
  const auto source = source_of(options, word_tokenizer());
  std::map<std::string, int> classes;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto spec = source->at(i);
    ++classes[spec.class_name];
    const bool long_prompt = spec.class_name == "summarize" || spec.class_name == "long";
    const bool long_output = spec.class_name == "generate" || spec.class_name == "long";
    EXPECT_TRUE(long_prompt ? spec.prompt_len >= 410 && spec.prompt_len <= 1600
                            : spec.prompt_len >= 3 && spec.prompt_len <= 13);
    EXPECT_TRUE(long_output ? spec.output_len >= 51 && spec.output_len <= 205
                            : spec.output_len >= 3 && spec.output_len <= 13);
  }
  EXPECT_EQ(classes, (std::map<std::string, int>{{"chat", 20}, {"generate", 8}, {"summarize", 8}, {"long", 4}}));
  EXPECT_EQ(source->info().name, "mixed");
  EXPECT_EQ(source->planned(), 40u);
}

TEST(Source, OutlineHasTheLengthsOfTheRequest) {
  WorkloadOptions options;
  options.workload = "mixed";
  options.scale = 0.01;
  const auto source = source_of(options, word_tokenizer());
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto outline = source->outline(i), whole = source->at(i);
    EXPECT_EQ(outline.request_id, whole.request_id);
    EXPECT_EQ(outline.class_name, whole.class_name);
    EXPECT_EQ(outline.prompt_len, whole.prompt_len);
    EXPECT_EQ(outline.output_len, whole.output_len);
    EXPECT_TRUE(std::get<std::string>(outline.prompt).empty());
  }
}

TEST(Source, ChatLawIsNamed) {
  WorkloadOptions options;
  options.dataset_name = "sharegpt";
  const auto source = source_of(options, nullptr);
  EXPECT_TRUE(source->info().law.starts_with("sharegpt-law: lognormal"));
  EXPECT_EQ(source->at(0).class_name, "sharegpt");
  options.sharegpt_output_len = 33;
  EXPECT_EQ(source_of(options, nullptr)->at(5).output_len, 33);
}

TEST(Source, WrongOptionsAreNamed) {
  const auto with = [](auto change) {
    WorkloadOptions options;
    change(options);
    return error_of(options);
  };
  EXPECT_NE(with([](auto& o) { o.dataset_name = "sharegtp"; }).find("did you mean sharegpt?"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.dataset_name = "burstgpt"; }).find("not supported here"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.dataset_name = "random", o.dataset_path = "x"; }).find("--dataset-path"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.dataset_name = "azure"; }).find("needs --dataset-path"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.workload = "chat", o.dataset_name = "random"; }).find("--workload"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.num_prompts = 0; }).find("--num-prompts"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.random_input_len = 0; }).find("--random-input-len"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.random_output_len = -5; }).find("--random-output-len"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.scale = 0; }).find("--scale"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.random_range_ratio = "1.5"; }).find("--random-range-ratio"), std::string::npos);
}

TEST(Source, CommonLengthsReachEachDataSet) {
  WorkloadOptions options;
  set_common_lengths(options, 77, 33);
  EXPECT_EQ(options.random_input_len, 77);
  EXPECT_EQ(options.sonnet_input_len, 77);
  EXPECT_EQ(options.custom_output_len, 33);
  EXPECT_EQ(options.sharegpt_output_len, 33);
}

TEST(PlanHash, SeesEveryPart) {
  const auto source = source_of(random_options(8, 4, PromptForm::text), word_tokenizer());
  const std::vector<TimeNs> arrivals{1, 2, 3};
  const auto plan = make_plan(*source, arrivals);
  EXPECT_EQ(plan[2].intended, 3);
  const std::uint64_t hash = plan_hash(plan);
  EXPECT_EQ(hash, plan_hash(make_plan(*source, arrivals)));
  EXPECT_EQ(plan_hash_text(0x1f), "000000000000001f");
  const auto changed = [&](auto change) {
    auto other = plan;
    change(other[1]);
    return plan_hash(other);
  };
  EXPECT_NE(hash, changed([](auto& s) { s.intended = 9; }));
  EXPECT_NE(hash, changed([](auto& s) { s.output_len = 9; }));
  EXPECT_NE(hash, changed([](auto& s) { s.prompt = std::string("other"); }));
  EXPECT_NE(hash, changed([](auto& s) { s.prompt = Ids{1, 2}; }));
  EXPECT_NE(hash, changed([](auto& s) { s.class_name = "chat"; }));
}

}  // namespace
}  // namespace tokenstone::workload
