#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace headrace {
namespace {

TEST(CounterRandom, IsAFunctionOfItsKeyAndOfEachPartOfIt) {
  EXPECT_EQ(counter_random(1, 2, 3, 4), counter_random(1, 2, 3, 4));
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 16; ++i) {
    for (uint64_t part = 0; part < 4; ++part) {
      uint64_t key[4] = {100, 200, 300, 400};
      key[part] += i + 1;
      seen.insert(counter_random(key[0], key[1], key[2], key[3]));
    }
  }
  EXPECT_EQ(seen.size(), 64u);
}

TEST(CounterRandom, IsUniform) {
  constexpr int kDraws = 100000;
  int buckets[10] = {};
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double u = to_unit_interval(counter_random(42, 0, i, 0));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    ++buckets[static_cast<int>(u * 10)];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  for (const int count : buckets) EXPECT_NEAR(count, kDraws / 10, 5 * std::sqrt(kDraws / 10));
}

}  // namespace
}  // namespace headrace
