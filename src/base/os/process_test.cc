#include "base/os/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace headrace {
namespace {

using std::chrono::milliseconds;

Result<ProcessResult> shell(const std::string& script) {
  ProcessOptions options;
  options.argv = {"sh", "-c", script};
  return run_process(options);
}

TEST(Process, CapturesOutputAndExitCode) {
  const auto result = shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_FALSE(result->succeeded());
}

TEST(Process, NoShellReadsTheArguments) {
  ProcessOptions options;
  options.argv = {"printf", "%s|", "a b", "$HOME", "; echo x", ""};
  const auto result = run_process(options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out, "a b|$HOME|; echo x||");
}

TEST(Process, GivesInputEnvironmentAndFolder) {
  ProcessOptions options;
  options.argv = {"sh", "-c", "cat; echo \"$NEW ${HOME-unset}\"; pwd"};
  options.input = std::string(300000, 'x') + "\n";  // more than a pipe holds
  options.environment = {{"NEW", "value"}};
  options.unset = {"HOME"};
  options.working_directory = "/";
  const auto result = run_process(options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out, options.input + "value unset\n/\n");
}

TEST(Process, InputThatNobodyReadsIsNoFault) {
  ProcessOptions options;
  options.argv = {"true"};
  options.input = std::string(1 << 20, 'x');
  const auto result = run_process(options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->succeeded());
}

TEST(Process, KeepsNoMoreOutputThanAsked) {
  ProcessOptions options;
  options.argv = {"sh", "-c", "head -c 1000000 /dev/zero; echo end >&2"};
  options.max_output_bytes = 1000;
  const auto result = run_process(options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out.size(), 1000u);
  EXPECT_EQ(result->err, "end\n");
}

TEST(Process, EndsAtItsTimeLimitWithAllItsChildren) {
  ProcessOptions options;
  options.argv = {"sh", "-c", "sleep 60 & wait"};
  options.timeout = milliseconds(200);
  const auto begin = std::chrono::steady_clock::now();
  const auto result = run_process(options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(20000));
}

TEST(Process, StopsWhenTheTickSaysSo) {
  ProcessOptions options;
  options.argv = {"sh", "-c", "exec > /dev/null 2>&1; sleep 60"};  // even with its pipes closed
  int ticks = 0;
  options.on_tick = [&] { return ++ticks < 3; };
  const auto result = run_process(options);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->stopped);
  EXPECT_EQ(ticks, 3);
}

TEST(Process, ABackgroundChildDoesNotHoldUpTheResult) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = shell("sleep 30 & echo $!");
  ASSERT_TRUE(result.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(15000));
  pid_t child = 0;
  std::istringstream(result->out) >> child;
  ASSERT_GT(child, 0);
  ::kill(child, SIGKILL);
}

TEST(Process, MissingProgramsAreNotFound) {
  ProcessOptions options;
  options.argv = {"no-such-program-anywhere"};
  EXPECT_EQ(run_process(options).error().code, ErrorCode::not_found);
  options.argv = {"/etc/passwd"};
  EXPECT_EQ(run_process(options).error().code, ErrorCode::not_found);
  options.argv = {};
  EXPECT_EQ(run_process(options).error().code, ErrorCode::invalid_argument);
  options.argv = {"true"};
  options.working_directory = "/no/such/folder";
  EXPECT_EQ(run_process(options).error().code, ErrorCode::io_error);
}

TEST(Process, TheProgramDiesWithUs) {
  const std::string file = ::testing::TempDir() + "headrace_process_pid";
  std::filesystem::remove(file);
  const pid_t middle = ::fork();
  ASSERT_GE(middle, 0);
  if (middle == 0) {
    (void)shell("echo $$ > " + file + ".new; mv " + file + ".new " + file + "; exec sleep 60");
    ::_exit(0);
  }
  while (!std::filesystem::exists(file)) std::this_thread::sleep_for(milliseconds(10));
  pid_t child = 0;
  std::ifstream(file) >> child;
  ASSERT_GT(child, 0);
  ::kill(middle, SIGKILL);
  ::waitpid(middle, nullptr, 0);
  // It is nobody's child now: gone, or a zombie that its new parent has not buried yet.
  const auto is_alive = [&] {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string pid;
    std::string name;
    std::string state = "gone";
    stat >> pid >> name >> state;
    return state != "gone" && state != "Z" && state != "X";
  };
  for (int i = 0; i < 500 && is_alive(); ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(is_alive());
  ::kill(child, SIGKILL);
}

}  // namespace
}  // namespace headrace
