#include "base/os/signals.h"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace headrace
