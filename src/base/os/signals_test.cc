#include "base/os/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

namespace headrace {
namespace {

TEST(InterruptGuard, TurnsSignalsIntoAFlagWhileAlive) {
  struct sigaction before {};
  ::sigaction(SIGINT, nullptr, &before);
  {
    const InterruptGuard guard(/*catch_terminate=*/true);
    EXPECT_FALSE(InterruptGuard::interrupted());
    ::raise(SIGINT);
    EXPECT_TRUE(InterruptGuard::interrupted());
    InterruptGuard::clear();
    EXPECT_FALSE(InterruptGuard::interrupted());
    ::raise(SIGTERM);
    EXPECT_TRUE(InterruptGuard::interrupted());
  }
  struct sigaction after {};
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  const InterruptGuard guard;
  EXPECT_FALSE(InterruptGuard::interrupted());  // a new one begins clean
}

bool is_readable(int descriptor) {
  struct pollfd wait {
    descriptor, POLLIN, 0
  };
  return ::poll(&wait, 1, 0) == 1;
}

TEST(InterruptGuard, DescriptorIsReadableAfterASignal) {
  const InterruptGuard guard;
  const int descriptor = wake_descriptor();
  ASSERT_GE(descriptor, 0);
  EXPECT_FALSE(is_readable(descriptor));
  for (int i = 0; i < 3; ++i) ::raise(SIGINT);
  EXPECT_TRUE(is_readable(descriptor));
  InterruptGuard::clear();
  EXPECT_FALSE(is_readable(descriptor));
}

TEST(InterruptGuard, OneInsideAnotherChangesNothing) {
  const InterruptGuard outer;
  ::raise(SIGINT);
  {
    const InterruptGuard inner(/*catch_terminate=*/true);
    EXPECT_TRUE(InterruptGuard::interrupted());
  }
  ::raise(SIGINT);  // still caught
  EXPECT_TRUE(InterruptGuard::interrupted());
}

TEST(TerminalSignals, AreSeenOnce) {
  const TerminalSignals signals;
  ::raise(SIGWINCH);
  ::raise(SIGCONT);
  EXPECT_TRUE(is_readable(wake_descriptor()));
  const auto seen = TerminalSignals::take();
  EXPECT_TRUE(seen.resized);
  EXPECT_TRUE(seen.continued);
  EXPECT_FALSE(is_readable(wake_descriptor()));
  EXPECT_FALSE(TerminalSignals::take().resized);
}

TEST(EndByInterrupt, IsADeathByTheSignal) {
  EXPECT_EXIT(
      {
        const InterruptGuard guard;
        end_by_interrupt();
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace headrace
