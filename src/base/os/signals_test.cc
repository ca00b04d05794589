#include "base/os/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace headrace {
namespace {

TEST(InterruptGuard, TurnsSignalsIntoAFlagWhileAlive) {
  struct sigaction before {};
  ::sigaction(SIGINT, nullptr, &before);
  {
    const InterruptGuard guard({.catch_terminate = true});
    EXPECT_FALSE(InterruptGuard::interrupted());
    ::raise(SIGINT);
    EXPECT_TRUE(InterruptGuard::interrupted());
    InterruptGuard::clear();
    EXPECT_FALSE(InterruptGuard::interrupted());
    EXPECT_FALSE(InterruptGuard::terminated());
    ::raise(SIGTERM);
    EXPECT_TRUE(InterruptGuard::interrupted());
    InterruptGuard::clear();
    EXPECT_TRUE(InterruptGuard::terminated());
  }
  struct sigaction after {};
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  const InterruptGuard guard;
  EXPECT_FALSE(InterruptGuard::interrupted());  // a new one begins clean
  EXPECT_FALSE(InterruptGuard::terminated());
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
    const InterruptGuard inner({.catch_terminate = true});
    EXPECT_TRUE(InterruptGuard::interrupted());
  }
  ::raise(SIGINT);  // still caught
  EXPECT_TRUE(InterruptGuard::interrupted());
}

TEST(InterruptGuard, ASecondOneEndsTheProcessWhereAsked) {
  EXPECT_EXIT(
      {
        const InterruptGuard guard({.second_ends = true});
        ::raise(SIGINT);
        InterruptGuard::clear();
        ::raise(SIGINT);
        if (!InterruptGuard::interrupted()) std::_Exit(1);
        ::raise(SIGINT);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptGuard, AWriteThatWaitsGoesOn) {
  const InterruptGuard guard;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string text(1 << 20, 'x');  // more than a pipe holds
  const pthread_t writer = ::pthread_self();
  std::thread reader([&] {
    // The second comes while nothing of the rest is written yet.
    for (int i = 0; i < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ::pthread_kill(writer, SIGINT);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::string part(text.size(), ' ');
    size_t count = 0;
    while (count < text.size()) {
      const ssize_t got = ::read(ends[0], part.data(), part.size());
      if (got <= 0) break;
      count += static_cast<size_t>(got);
    }
    EXPECT_EQ(count, text.size());
  });
  FILE* out = ::fdopen(ends[1], "w");
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), out), text.size());
  EXPECT_EQ(std::fclose(out), 0);
  reader.join();
  ::close(ends[0]);
  EXPECT_TRUE(InterruptGuard::interrupted());
}

TEST(WaitForInput, EndsByInputOrByAnInterrupt) {
  const InterruptGuard guard;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "a", 1), 1);
  EXPECT_TRUE(wait_for_input(ends[0]));
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::raise(SIGINT);
  EXPECT_FALSE(wait_for_input(ends[0]));
  InterruptGuard::clear();
  ::close(ends[1]);
  EXPECT_TRUE(wait_for_input(ends[0]));  // the end
  ::close(ends[0]);
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
