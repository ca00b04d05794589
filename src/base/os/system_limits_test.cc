#include "base/os/system_limits.h"

#include <gtest/gtest.h>

#include <thread>

namespace headrace {
namespace {

TEST(SystemLimits, CpuMaxTexts) {
  EXPECT_EQ(parse_cpu_max("max 100000\n"), 0);
  EXPECT_EQ(parse_cpu_max("100000 100000\n"), 1);
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 2);
  EXPECT_EQ(parse_cpu_max("1000 100000"), 1);
  EXPECT_EQ(parse_cpu_max("-1 100000"), 0);
  EXPECT_EQ(parse_cpu_max(""), 0);
  EXPECT_EQ(parse_cpu_max("1 0"), 0);
  EXPECT_EQ(parse_cpu_max("9223372036854775807 1"), 0);
}

TEST(SystemLimits, MemoryFields) {
  const std::string text = "MemTotal:  100 kB\nMemAvailable:      42 kB\nactive_file 7\nlast x\n";
  EXPECT_EQ(parse_memory_field(text, "MemAvailable"), 42U * 1024);
  EXPECT_EQ(parse_memory_field(text, "active_file"), 7U);
  EXPECT_EQ(parse_memory_field(text, "file"), std::nullopt);
  EXPECT_EQ(parse_memory_field(text, "last"), std::nullopt);
  EXPECT_EQ(parse_memory_field("a 9223372036854775807 kB", "a"), std::nullopt);
  EXPECT_EQ(parse_memory_field("", "a"), std::nullopt);
}

TEST(SystemLimits, AreWithinTheMachine) {
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(memory_limit_bytes(), 1u << 20);
  EXPECT_GT(memory_available_bytes(), 0U);
  EXPECT_LE(memory_available_bytes(), memory_limit_bytes());
  EXPECT_GT(peak_resident_bytes(), 100u << 10);
}

}  // namespace
}  // namespace headrace
