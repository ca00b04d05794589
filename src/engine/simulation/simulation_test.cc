// Some seeds of the simulation; tools/simulate runs as many as one likes.
#include "engine/simulation/simulation.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Simulation, SeedsRunToTheirEnd) {
  SimulationResult sum;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SimulationOptions options{.seed = seed, .num_requests = 300};
    if (seed % 2 == 0) options.session_folder = testing::TempDir();
    const SimulationResult result = simulate(options);
    ASSERT_EQ(result.fault, "") << "build/release/tools/simulate --seeds " << seed << ".." << seed
                                << " --requests 300"
                                << (options.session_folder.empty() ? "" : " --sessions /tmp");
    sum.num_sessions += result.num_sessions;
    sum.num_finished += result.num_finished;
    sum.num_cancelled += result.num_cancelled;
    sum.num_expired += result.num_expired;
    sum.num_failed += result.num_failed;
    sum.stats.prefix_hit_tokens += result.stats.prefix_hit_tokens;
    for (size_t i = 0; i < kNumMemoryRungs; ++i) sum.stats.rungs[i] += result.stats.rungs[i];
  }
  // A simulation in which nothing happens would find nothing.
  EXPECT_GT(sum.num_finished, 5000);
  EXPECT_GT(sum.num_cancelled, 100);
  EXPECT_GT(sum.num_expired, 20);
  EXPECT_GT(sum.num_failed, 20);
  EXPECT_GT(sum.num_sessions, 100);
  EXPECT_GT(sum.stats.prefix_hit_tokens, 10000);
  EXPECT_GT(sum.stats.rung(MemoryRung::preempt), 100);
  EXPECT_GT(sum.stats.rung(MemoryRung::evict_prefixes), 1000);
}

TEST(Simulation, ASeedReplaysExactly) {
  const SimulationOptions options{.seed = 12, .num_requests = 200};
  const SimulationResult first = simulate(options);
  const SimulationResult second = simulate(options);
  EXPECT_EQ(first.num_steps, second.num_steps);
  EXPECT_EQ(first.num_finished, second.num_finished);
  EXPECT_EQ(first.stats.step_rows, second.stats.step_rows);
  EXPECT_EQ(first.stats.rungs, second.stats.rungs);
}

}  // namespace
}  // namespace headrace
