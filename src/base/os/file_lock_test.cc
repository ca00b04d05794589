#include "base/os/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace headrace {
namespace {

TEST(FileLock, OneAtATimeAndFreeAfterwards) {
  const std::string path = ::testing::TempDir() + "headrace_lock";
  int waits = 0;
  const auto give_up = [&] { return ++waits < 2; };
  {
    auto first = FileLock::acquire(path, {});
    ASSERT_TRUE(first.ok());
    const FileLock moved = std::move(first).value();
    const auto second = FileLock::acquire(path, give_up);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::cancelled);
    EXPECT_EQ(waits, 2);
  }
  EXPECT_TRUE(FileLock::acquire(path, {}).ok());
  EXPECT_EQ(waits, 2);
}

TEST(FileLock, DiesWithItsHolder) {
  const std::string path = ::testing::TempDir() + "headrace_lock_held";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = FileLock::acquire(path, {});
    [[maybe_unused]] const auto put = ::write(ready[1], lock.ok() ? "1" : "0", 1);
    ::pause();
    ::_exit(0);
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, '1');
  EXPECT_FALSE(FileLock::acquire(path, [] { return false; }).ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(FileLock::acquire(path, [] { return false; }).ok());
}

TEST(FileLock, AFolderThatIsNotThere) {
  EXPECT_EQ(FileLock::acquire("/no/such/folder/lock", {}).error().code, ErrorCode::io_error);
}

}  // namespace
}  // namespace headrace
