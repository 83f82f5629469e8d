#include "app/flags.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/shared_data.h"

namespace tokenstone::app {
namespace {

struct Options {
  std::int64_t num_prompts = 1000;
  double rate = 1;
  bool ignore_eos = false;
  std::string model;
  std::optional<std::int64_t> cap;
  std::vector<std::string> goodput;
};

FlagSet flags_for(Options& o) {
  FlagSet flags("bench serve", "Load.");
  flags.group("Load")
      .add("num-prompts", &o.num_prompts, "N", "requests")
      .add("request-rate", &o.rate, "RATE", "rate", {"rate"})
      .add("ignore-eos", &o.ignore_eos, "", "go on")
      .add("max-concurrency", &o.cap, "N", "cap")
      .add("goodput", &o.goodput, "K:MS ...", "limits")
      .positional("model", &o.model, "the model")
      .accept("disable-tqdm", false, "there is no such bar here")
      .accept("tokenizer-mode", true, "there is one mode")
      .refuse("lora-modules", "adapters are not served");
  return flags;
}

TEST(FlagSet, UnderscoresAndDashesAreTheSameAndTheLastWins) {
  Options o;
  const auto parsed = flags_for(o).parse({"--num_prompts", "5", "--num-prompts=7", "--rate", "inf"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(o.num_prompts, 7);
  EXPECT_EQ(o.rate, std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed->values.at("request-rate"), "inf");
  EXPECT_TRUE(parsed->was_given("num-prompts"));
  EXPECT_FALSE(parsed->was_given("ignore-eos"));
}

TEST(FlagSet, ListsTakeSeveralWordsAndTheLastListWins) {
  Options o;
  ASSERT_TRUE(flags_for(o).parse({"--goodput", "ttft:1", "--goodput", "ttft:200", "tpot:50", "--ignore-eos"}));
  EXPECT_EQ(o.goodput, (std::vector<std::string>{"ttft:200", "tpot:50"}));
  EXPECT_TRUE(o.ignore_eos);
}

TEST(FlagSet, SwitchesCanBeTurnedOff) {
  Options o;
  o.ignore_eos = true;
  ASSERT_TRUE(flags_for(o).parse({"--no-ignore-eos"}));
  EXPECT_FALSE(o.ignore_eos);
  ASSERT_TRUE(flags_for(o).parse({"--ignore-eos=true"}));
  EXPECT_TRUE(o.ignore_eos);
}

TEST(FlagSet, NegativeNumbersAreValues) {
  Options o;
  ASSERT_TRUE(flags_for(o).parse({"--request-rate", "-1", "tiny"}));
  EXPECT_EQ(o.rate, -1);
  EXPECT_EQ(o.model, "tiny");
}

TEST(FlagSet, AnUnknownFlagNamesTheNearest) {
  Options o;
  const auto parsed = flags_for(o).parse({"--num-promts", "5"});
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("did you mean --num-prompts?"), std::string::npos) << parsed.error().message;
}

TEST(FlagSet, ForeignFlagsAreAcceptedWithANoteOrRefusedByName) {
  Options o;
  const auto parsed = flags_for(o).parse({"--disable-tqdm", "--tokenizer-mode", "slow", "--num-prompts", "3"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->notes.size(), 2u);
  EXPECT_EQ(o.num_prompts, 3);
  const auto refused = flags_for(o).parse({"--lora_modules", "a"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--lora-modules is not supported"), std::string::npos);
}

TEST(FlagSet, WrongValuesSayWhatWasExpected) {
  Options o;
  for (const auto& args : std::vector<std::vector<std::string>>{
           {"--num-prompts", "many"}, {"--num-prompts"}, {"--ignore-eos=maybe"}, {"--goodput"}, {"a", "b"}})
    EXPECT_FALSE(flags_for(o).parse(args)) << args[0];
}

TEST(FlagSet, AConfigFileHoldsFlagsAndTheCommandLineWins) {
  const auto path = tokenstone::testing::temporary_folder() / "flags.yaml";
  std::ofstream(path) << "num_prompts: 12\nrequest-rate: 3.5\ngoodput: [ttft:5, tpot:6]\nignore-eos: true\n";
  Options o;
  ASSERT_TRUE(flags_for(o).parse({"--num-prompts", "20", "--config", path.string()}));
  EXPECT_EQ(o.num_prompts, 20);
  EXPECT_EQ(o.rate, 3.5);
  EXPECT_TRUE(o.ignore_eos);
  EXPECT_EQ(o.goodput.size(), 2u);
  const auto json = path.parent_path() / "flags.json";
  std::ofstream(json) << R"({"num-prompts": 9, "nonsense": 1})";
  EXPECT_FALSE(flags_for(o).parse({"--config", json.string()}));
}

TEST(FlagSet, TheHelpFitsEightyColumns) {
  Options o;
  const std::string help = flags_for(o).help();
  std::size_t longest = 0, start = 0;
  for (std::size_t end; (end = help.find('\n', start)) != std::string::npos; start = end + 1)
    longest = std::max(longest, end - start);
  EXPECT_LE(longest, 80u) << help;
}

}  // namespace
}  // namespace tokenstone::app
