#include "app/memory_shares.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "app/memory_plan.h"

namespace headrace {
namespace {

using Shares = std::vector<uint64_t>;
constexpr uint64_t kMib = uint64_t{1} << 20;

Shares shares_of(const std::vector<MemoryClaim>& claims, uint64_t budget) {
  auto shares = divide_memory(claims, budget);
  EXPECT_TRUE(shares.ok()) << shares.error().to_string();
  return shares.ok() ? *shares : Shares();
}

Error error_of(const std::vector<MemoryClaim>& claims, uint64_t budget) {
  auto shares = divide_memory(claims, budget);
  EXPECT_FALSE(shares.ok());
  return shares.ok() ? Error() : shares.error();
}

TEST(DivideMemory, WhatIsLeftEquallyUnlessAskedFor) {
  EXPECT_EQ(shares_of({{"a", 100, 1, 0}}, 1000), Shares{900});
  EXPECT_EQ(shares_of({{"a", 100, 1, 0}, {"b", 300, 1, 0}}, 1000), (Shares{300, 300}));
  EXPECT_EQ(shares_of({{"a", 100, 1, 0}, {"b", 300, 1, 400}, {"c", 0, 1, 0}}, 1000),
            (Shares{100, 400, 100}));
  EXPECT_EQ(shares_of({{"a", 500, 1, 500}}, 1000), Shares{500}) << "to the last byte";
}

TEST(DivideMemory, NamesTheModelThatDoesNotFit) {
  const Error first = error_of({{"a", 2000 * kMib, kMib, 0}, {"b", kMib, kMib, 0}}, 1000 * kMib);
  EXPECT_EQ(first.code, ErrorCode::resource_exhausted);
  EXPECT_EQ(first.where, "a");
  EXPECT_NE(first.message.find("2001 MiB"), std::string::npos) << first.message;
  EXPECT_NE(first.message.find("1000 MiB"), std::string::npos) << first.message;
  EXPECT_EQ(first.message.find(" b "), std::string::npos) << "it is not b's fault";

  const Error second =
      error_of({{"a", 600 * kMib, kMib, 0}, {"b", 300 * kMib, kMib, 200 * kMib}}, 1000 * kMib);
  EXPECT_EQ(second.where, "b");
  EXPECT_NE(second.message.find("500 MiB"), std::string::npos) << second.message;
  EXPECT_NE(second.message.find("a with 601 MiB"), std::string::npos) << second.message;

  // Together their least fits, but not each its own in an equal share.
  EXPECT_EQ(error_of({{"a", 0, 10, 0}, {"b", 0, 600, 0}}, 1000).where, "b");
}

TEST(DivideMemory, TellsApartWhatIsNearlyTheSame) {
  const Error error = error_of({{"a", 0, 368'640, 1024}}, 10 * kMib);
  EXPECT_NE(error.message.find("a KV cache of 1024 bytes and needs 368640 bytes"),
            std::string::npos)
      << error.message;
}

TEST(DivideMemory, SurvivesAnyNumber) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(error_of({{"a", kMost, kMost, kMost}}, 1000).where, "a");
  EXPECT_EQ(error_of({{"a", 10, 1, 0}, {"b", 10, 1, kMost}}, 1000).where, "b");
}

TEST(LimitOfBudget, IsTheInverse) {
  for (const uint64_t budget : {uint64_t{0}, uint64_t{1}, uint64_t{9}, uint64_t{10}, uint64_t{11},
                                uint64_t{123'456'789}, 7 * kMib, uint64_t{1} << 40}) {
    EXPECT_EQ(budget_bytes(limit_of_budget(budget)), budget);
  }
}

}  // namespace
}  // namespace headrace
