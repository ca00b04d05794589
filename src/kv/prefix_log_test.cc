// What a router is told of the prefix cache, also where it does not listen.
#include "kv/prefix_log.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace headrace {
namespace {

using Kind = KvEvent::Kind;

void store(PrefixLog& log, TokenId token) {
  const std::vector<TokenId> tokens{token};
  log.stored(0, {}, {}, tokens);
}

std::vector<uint64_t> numbers_of(const std::vector<KvEvent>& events) {
  std::vector<uint64_t> out;
  for (const KvEvent& event : events) out.push_back(event.number);
  return out;
}

TEST(PrefixLog, TellsWhatHappenedInOrder) {
  PrefixLog log;
  EXPECT_TRUE(log.take().empty());
  store(log, 5);
  log.removed(1, {}, {});
  const auto events = log.take();
  ASSERT_EQ(numbers_of(events), (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(events[0].kind, Kind::stored);
  EXPECT_EQ(events[0].tokens, std::vector<TokenId>{5});
  EXPECT_EQ(events[1].kind, Kind::removed);
  EXPECT_EQ(events[1].group, 1);
  EXPECT_TRUE(log.take().empty());
}

TEST(PrefixLog, ClearedHasANumberOfItsOwn) {
  PrefixLog log;
  store(log, 1);
  log.cleared();
  log.cleared();
  store(log, 2);
  const auto events = log.take();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::cleared);
  EXPECT_EQ(events[1].kind, Kind::stored);
  EXPECT_EQ(events[1].number, events[0].number + 1);
  store(log, 3);
  EXPECT_EQ(log.take().front().number, events[1].number + 1);
}

TEST(PrefixLog, WhereNobodyListensItStaysSmall) {
  PrefixLog log(3);
  for (TokenId token = 0; token < 3; ++token) store(log, token);
  ASSERT_EQ(numbers_of(log.take()), (std::vector<uint64_t>{0, 1, 2}));
  for (TokenId token = 0; token < 100; ++token) store(log, token);
  const auto events = log.take();
  ASSERT_LE(events.size(), 4U);
  EXPECT_EQ(events.front().kind, Kind::cleared);
  EXPECT_EQ(events.back().tokens, std::vector<TokenId>{99});
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_EQ(events[i].kind, Kind::stored);
    EXPECT_EQ(events[i].number, events[i - 1].number + 1);
  }
}

TEST(PrefixLog, TakenOnAnotherThread) {
  constexpr uint64_t kNumEvents = 20'000;
  PrefixLog log;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kNumEvents; ++i) store(log, static_cast<TokenId>(i));
  });
  uint64_t num_seen = 0;
  while (num_seen < kNumEvents) {
    for (const KvEvent& event : log.take()) ASSERT_EQ(event.number, num_seen++);
  }
  writer.join();
}

}  // namespace
}  // namespace headrace
