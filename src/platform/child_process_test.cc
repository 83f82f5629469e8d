#include "platform/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tokenstone::platform {
namespace {

TEST(RunCommand, GathersOutputErrorsAndExitCode) {
  const auto ran = run_command({"sh", "-c", "echo out; echo err >&2; exit 7"}, 10 * kSecond);
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->out, "out\n");
  EXPECT_EQ(ran->err, "err\n");
  EXPECT_EQ(ran->exit_code, 7);
}

TEST(RunCommand, SaysWhatCannotBeStarted) {
  const auto ran = run_command({"no-such-program-here"}, kSecond);
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().message.find("no-such-program-here"), std::string::npos);
}

TEST(RunCommand, EndsAProgramThatTakesTooLong) {
  const auto ran = run_command({"sleep", "60"}, kMillisecond);
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->timed_out);
}

TEST(RunCommand, ReplacesEnvironmentVariables) {
  const auto ran =
      run_command({"sh", "-c", "echo $TOKENSTONE_TEST_VALUE"}, 10 * kSecond, "", {"TOKENSTONE_TEST_VALUE=seven"});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->out, "seven\n");
}

TEST(ChildProcess, ReadsLinesAndEndsBySignal) {
  auto child = ChildProcess::start({"sh", "-c", "echo ready; exec sleep 60"});
  ASSERT_TRUE(child);
  EXPECT_EQ(child->read_line(10 * kSecond), "ready");
  child->signal(SIGTERM);
  EXPECT_EQ(child->wait(10 * kSecond), 128 + SIGTERM);
}

}  // namespace
}  // namespace tokenstone::platform
