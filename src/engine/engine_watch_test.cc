// What can be seen of an engine from outside: figures of its steps, and whether one is stuck.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "engine/test_engine.h"

namespace headrace {
namespace {

TEST(Histogram, AValueBelongsToTheFirstBucketThatReachesIt) {
  Histogram<3> histogram{.bounds = {1, 8, 16}};
  for (const double value : {0.0, 1.0, 1.5, 8.0, 16.0, 16.5, 1e9}) histogram.add(value);
  EXPECT_EQ(histogram.counts, (std::array<int64_t, 4>{2, 2, 1, 2}));
  EXPECT_EQ(histogram.num_values(), 7);
  EXPECT_DOUBLE_EQ(histogram.sum, 43.0 + 1e9);
}

TEST(EngineStats, StepsByRowsAndSeconds) {
  EngineOptions options = small_options();  // steps of up to 32 rows
  options.prefix_cache = false;
  Fixture fixture(options);
  fixture.runner->on_step([&](int64_t num_rows) { fixture.clock->advance_ms(num_rows); });
  Request request = request_of(prompt_of(70, 1), 10, 1);  // 32, 32, 6 rows, then 9 times one
  request.stop.ignore_eos = true;
  Stream stream = fixture.submit(request);
  fixture.run_until_idle();
  const EngineStats stats = fixture.engine->stats();
  const auto& rows = stats.step_rows_histogram;
  EXPECT_EQ(rows.num_values(), stats.num_steps);
  EXPECT_EQ(rows.num_values(), 12);
  EXPECT_DOUBLE_EQ(rows.sum, static_cast<double>(stats.step_rows));
  EXPECT_EQ(rows.bounds[3], 32);
  EXPECT_EQ(rows.counts[0], 9);
  EXPECT_EQ(rows.counts[1], 1);
  EXPECT_EQ(rows.counts[3], 2);
  const auto& seconds = stats.step_seconds;
  EXPECT_EQ(seconds.num_values(), 12);
  EXPECT_NEAR(seconds.sum, 0.079, 1e-3);
  EXPECT_EQ(seconds.bounds[2], 0.002);
  EXPECT_EQ(seconds.counts[2], 9) << "a millisecond and a bit";
  EXPECT_EQ(seconds.bounds[6], 0.05);
  EXPECT_EQ(seconds.counts[6], 2);
}

TEST(EngineStats, AStepThatFailedIsInNoHistogram) {
  Fixture fixture(small_options());
  fixture.runner->fail_next_step();
  Stream stream = fixture.submit(request_of({1, 2, 3}, 1, 1));
  fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->stats().num_failed_steps, 1);
  EXPECT_EQ(fixture.engine->stats().step_rows_histogram.num_values(), 0);
  EXPECT_EQ(fixture.engine->stats().step_seconds.num_values(), 0);
}

/// A step that waits for `go_on`, or goes on by itself after a minute.
struct HangingStep {
  std::promise<void> has_begun;
  std::promise<void> go_on;
  std::shared_future<void> may_go_on = go_on.get_future();

  void run() {
    has_begun.set_value();
    EXPECT_EQ(may_go_on.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  }
};

TEST(StalledFor, AStepThatHangs) {
  using namespace std::chrono_literals;
  Fixture fixture(small_options());
  Engine& engine = *fixture.engine;
  HangingStep hanging;
  bool is_first = true;
  fixture.runner->on_step([&](int64_t /*num_rows*/) {
    if (std::exchange(is_first, false)) hanging.run();
  });
  EXPECT_EQ(engine.stalled_for(), 0s);
  fixture.clock->advance_ms(60'000);
  EXPECT_EQ(engine.stalled_for(), 0s) << "it has nothing to do";
  fixture.engine->start();
  const Request request = request_of(prompt_of(20, 1), 5, 1);
  Stream stream = fixture.submit(request);
  hanging.has_begun.get_future().wait();
  EXPECT_LT(engine.stalled_for(), 1s);
  fixture.clock->advance_ms(11'000);
  EXPECT_GE(engine.stalled_for(), 11s);
  EXPECT_LT(engine.stalled_for(), 12s);
  // Nothing that is asked of it waits for the step.
  EXPECT_EQ(engine.stats().num_steps, 0);
  EXPECT_TRUE(engine.submit(request).ok());
  hanging.go_on.set_value();
  expect_same(read(stream), expected(request, 200));
  fixture.engine.reset();
}

TEST(StalledFor, AStepThatFailsIsOver) {
  Fixture fixture(small_options());
  fixture.runner->fail_next_step();
  Stream stream = fixture.submit(request_of({1, 2, 3}, 1, 1));
  fixture.engine->step(false);
  fixture.clock->advance_ms(60'000);
  EXPECT_EQ(fixture.engine->stalled_for().count(), 0);
}

// A layer that takes long is no step that hangs: under full load steps take many seconds.
TEST(StalledFor, ALongStepIsNotStuck) {
  Fixture fixture(small_options());
  std::chrono::nanoseconds longest{0};
  fixture.runner->on_step([&](int64_t /*num_rows*/) {
    for (int layer = 0; layer < 30; ++layer) {
      fixture.clock->advance_ms(1000);
      longest = std::max(longest, fixture.engine->stalled_for());
      fixture.runner->heartbeat().beat(fixture.clock->now_ns());
    }
  });
  Stream stream = fixture.submit(request_of(prompt_of(20, 1), 2, 1));
  fixture.run_until_idle();
  EXPECT_GE(longest, std::chrono::milliseconds(1000));
  EXPECT_LT(longest, std::chrono::milliseconds(1100));
}

constexpr std::chrono::nanoseconds kNoWait{0};

TEST(KvMapOf, BlocksInTheirOrder) {
  Fixture fixture(small_options(), {{.block_tokens = 16, .window = 0}});  // 52 blocks
  Engine& engine = *fixture.engine;
  EXPECT_EQ(engine.kv_map(kNoWait), std::vector<std::string>{"f52"});
  Stream stream = fixture.submit(request_of(prompt_of(40, 1), 5, 1));
  fixture.clock->advance_ms(300);
  engine.kv_map(kNoWait);  // which asks for a new one
  fixture.engine->step(false);
  fixture.engine->step(false);
  EXPECT_EQ(engine.kv_map(kNoWait), std::vector<std::string>{"h2f50"}) << "after the first step";
  stream.cancel();
  fixture.run_until_idle();
  EXPECT_EQ(engine.kv_map(kNoWait), std::vector<std::string>{"h2f50"}) << "not drawn at each step";
  fixture.clock->advance_ms(300);
  engine.kv_map(kNoWait);
  fixture.engine->step(false);
  EXPECT_EQ(engine.kv_map(kNoWait), std::vector<std::string>{"c3f49"});
  engine.clear_prefix_cache();
  fixture.clock->advance_ms(300);
  fixture.engine->step(false);
  EXPECT_EQ(engine.kv_map(kNoWait), std::vector<std::string>{"f52"});
}

TEST(KvMapOf, NobodyLooksAndNothingIsDrawn) {
  Fixture fixture(small_options(), {{.block_tokens = 16, .window = 0}});
  Engine& engine = *fixture.engine;
  engine.kv_map(kNoWait);
  fixture.clock->advance_ms(6000);
  Stream stream = fixture.submit(request_of(prompt_of(40, 1), 5, 1));
  fixture.engine->step(false);
  const auto old = engine.kv_map(kNoWait);
  EXPECT_EQ(old, std::vector<std::string>{"f52"}) << "from when somebody last looked";
  fixture.engine->step(false);
  EXPECT_NE(engine.kv_map(kNoWait), old);
}

TEST(KvMapOf, HasAGroupEach) {
  Fixture fixture(small_options());
  const auto map = fixture.engine->kv_map(kNoWait);
  const auto groups = fixture.engine->stats().groups;
  ASSERT_EQ(map.size(), groups.size());
  for (size_t i = 0; i < map.size(); ++i) {
    EXPECT_EQ(map[i], "f" + std::to_string(groups[i].num_blocks));
  }
}

// An engine that sleeps is woken to draw; many threads look while steps go on.
TEST(KvMapOf, IsReadWhileStepsGoOn) {
  Fixture fixture(small_options(), {{.block_tokens = 16, .window = 0}},
                  std::make_shared<SystemClock>());
  fixture.engine->start();
  std::atomic<bool> is_over = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!is_over) EXPECT_EQ(fixture.engine->kv_map(std::chrono::milliseconds(1)).size(), 1U);
    });
  }
  for (int i = 0; i < 20; ++i) {
    Stream stream = fixture.submit(request_of(prompt_of(40, i), 20, 1));
    read(stream);
  }
  is_over = true;
  for (auto& reader : readers) reader.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(260));  // so that the picture is old
  const auto map = fixture.engine->kv_map(std::chrono::seconds(60)).front();
  EXPECT_EQ(map.find('h'), std::string::npos) << map;
  EXPECT_NE(map.find('c'), std::string::npos) << map;
}

}  // namespace
}  // namespace headrace
