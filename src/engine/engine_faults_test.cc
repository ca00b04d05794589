// The engine where its own books are wrong: a fault of ours, made on purpose here. Everybody is
// told, nothing terminates, and the next request is served.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "engine/test_engine.h"

namespace headrace {
namespace {

CacheGroup& group_of(Fixture& fixture) {
  return const_cast<CacheGroup&>(fixture.scheduler().cache().groups().front());
}

int32_t held_block(const CacheGroup& group) {
  for (int32_t block = 0; block < group.pool().num_blocks(); ++block) {
    if (group.pool().references(block) > 0) return block;
  }
  throw std::runtime_error("no block is held");
}

/// A block that nobody will ever give back.
void lose_block(Fixture& fixture) {
  CacheGroup& group = group_of(fixture);
  group.retain(held_block(group));
}

/// A block that its holders will give back once more than they may.
void give_back_too_early(Fixture& fixture) {
  CacheGroup& group = group_of(fixture);
  const int32_t block = held_block(group);
  while (group.pool().references(block) > 0) group.release(block);
}

/// Some that run, and some that wait.
std::vector<Stream> submit_some(Fixture& fixture) {
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 7; ++i) {
    streams.push_back(fixture.submit(request_of(prompt_of(20, 100 * i), 50, 4)));
  }
  for (int i = 0; i < 3; ++i) fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 4U);
  EXPECT_EQ(fixture.scheduler().num_waiting(), 3U);
  return streams;
}

void expect_all_failed(std::vector<Stream>& streams) {
  for (Stream& stream : streams) {
    const Outcome got = read(stream);
    ASSERT_TRUE(got.error.has_value());
    EXPECT_EQ(got.error->code, ErrorCode::internal);
  }
}

void expect_it_goes_on(Fixture& fixture) {
  const EngineStats stats = fixture.engine->stats();
  EXPECT_EQ(stats.num_broken_invariants, 1);
  EXPECT_EQ(stats.num_waiting, 0);
  EXPECT_EQ(stats.waiting_tokens, 0);
  const Request request = request_of(prompt_of(50, 3), 20, 1);
  auto stream = fixture.submit(request);
  fixture.run_until_idle();
  expect_same(read(stream), expected(request, 200));
  fixture.expect_all_blocks_free();
  EXPECT_EQ(fixture.engine->stats().num_broken_invariants, 1);
}

TEST(EngineFaults, ABlockThatIsLostIsFoundWhenAStepFails) {
  Fixture fixture(small_options());
  auto streams = submit_some(fixture);
  lose_block(fixture);
  fixture.runner->fail_next_step();
  fixture.engine->step(false);
  expect_all_failed(streams);
  EXPECT_EQ(fixture.engine->stats().num_cancelled, 0) << "nobody cancelled anything";
  EXPECT_EQ(fixture.engine->stats().num_errors, 7);
  expect_it_goes_on(fixture);
}

TEST(EngineFaults, ABlockThatIsGivenBackTwiceWhenAStepFails) {
  Fixture fixture(small_options());
  auto streams = submit_some(fixture);
  give_back_too_early(fixture);
  fixture.runner->fail_next_step();
  fixture.engine->step(false);
  expect_all_failed(streams);
  expect_it_goes_on(fixture);
}

TEST(EngineFaults, ABlockThatIsGivenBackTwiceWhenARequestIsCancelled) {
  Fixture fixture(small_options());
  auto streams = submit_some(fixture);
  give_back_too_early(fixture);
  for (int i = 0; i < 4; ++i) streams[static_cast<size_t>(i)].cancel();
  fixture.engine->step(false);
  for (Stream& stream : streams) {
    const Outcome got = read(stream);
    const bool is_cancelled = got.finish && got.finish->reason == FinishReason::cancelled;
    EXPECT_TRUE(is_cancelled || (got.error && got.error->code == ErrorCode::internal));
  }
  expect_it_goes_on(fixture);
}

TEST(EngineFaults, ABlockThatIsLostIsFoundWhenThereIsTime) {
  Fixture fixture(small_options());
  const Request request = request_of(prompt_of(20, 1), 30, 4);
  auto stream = fixture.submit(request);
  fixture.engine->step(false);
  lose_block(fixture);
  while (!fixture.scheduler().is_idle()) fixture.engine->step(false);
  expect_same(read(stream), expected(request, 200));  // its tokens were right
  expect_it_goes_on(fixture);
}

TEST(EngineFaults, ItsEndEndsEveryStream) {
  auto fixture = std::make_optional<Fixture>(small_options());
  auto streams = submit_some(*fixture);
  give_back_too_early(*fixture);
  fixture.reset();
  for (Stream& stream : streams) {
    const Outcome got = read(stream);
    EXPECT_TRUE(got.finish || (got.error && got.error->code == ErrorCode::internal));
  }
}

}  // namespace
}  // namespace headrace
