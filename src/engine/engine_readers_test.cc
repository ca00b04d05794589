// Readers who are late: their requests pause, all others go on, and nothing is lost.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "engine/test_engine.h"

namespace headrace {
namespace {

using std::chrono::milliseconds;

/// Room for a few tokens that nobody reads.
EngineOptions tight_options() {
  EngineOptions options = small_options();
  options.max_unread_bytes = 8 * sizeof(Event);
  return options;
}

Request long_request(TokenId first, size_t num_prompt = 20) {
  Request request = request_of(prompt_of(num_prompt, first), 60, 4);
  request.stop.ignore_eos = true;
  return request;
}

/// Takes what there is; whether that was the end.
bool read_some(Stream& stream, Outcome& out) {
  while (stream.wait_for(milliseconds(0))) {
    const auto event = stream.next();
    if (!event) return true;
    if (const auto* token = std::get_if<TokenEvent>(&*event)) out.tokens.push_back(token->id);
    if (const auto* finish = std::get_if<FinishEvent>(&*event)) out.finish = *finish;
    if (const auto* error = std::get_if<ErrorEvent>(&*event)) out.error = error->error;
  }
  return false;
}

/// Steps and reads until its end.
Outcome read_on(Fixture& fixture, Stream& stream) {
  Outcome out;
  for (int i = 0; i < 1000 && !read_some(stream, out); ++i) {
    fixture.engine->step(false);
    fixture.scheduler().check_invariants();
  }
  return out;
}

void step(Fixture& fixture, int num_steps) {
  for (int i = 0; i < num_steps; ++i) {
    fixture.engine->step(false);
    fixture.scheduler().check_invariants();
  }
}

TEST(EngineReaders, OneThatIsNotReadPausesAndOthersGoOn) {
  Fixture fixture(tight_options());
  const Request slow = long_request(1);
  const Request other = long_request(500);
  Stream slow_stream = fixture.submit(slow);
  Stream other_stream = fixture.submit(other);
  expect_same(read_on(fixture, other_stream), expected(other, 200));
  EngineStats stats = fixture.engine->stats();
  EXPECT_EQ(stats.num_running, 1);
  EXPECT_EQ(stats.num_paused, 1);
  EXPECT_EQ(stats.num_pauses, 1);
  EXPECT_GE(stats.generated_tokens, 60 + 7);
  EXPECT_LE(stats.generated_tokens, 60 + 9);
  const int64_t num_rows = fixture.runner->num_rows();
  step(fixture, 50);
  EXPECT_EQ(fixture.runner->num_rows(), num_rows) << "nothing is computed that nobody reads";
  expect_same(read_on(fixture, slow_stream), expected(slow, 200));
  stats = fixture.engine->stats();
  EXPECT_EQ(stats.num_paused, 0);
  fixture.expect_all_blocks_free();
}

TEST(EngineReaders, OneThatPausesCanBeCancelledAndDropped) {
  Fixture fixture(tight_options());
  Stream cancelled = fixture.submit(long_request(1));
  {
    Stream dropped = fixture.submit(long_request(2));
    step(fixture, 50);
    EXPECT_EQ(fixture.engine->stats().num_paused, 2);
  }
  step(fixture, 1);
  EXPECT_EQ(fixture.engine->stats().num_running, 1);
  cancelled.cancel();
  step(fixture, 1);
  EXPECT_TRUE(fixture.scheduler().is_idle());
  fixture.expect_all_blocks_free();
  EXPECT_EQ(read(cancelled).finish->reason, FinishReason::cancelled);
}

TEST(EngineReaders, OneThatPausesHasItsDeadline) {
  Fixture fixture(tight_options());
  Request request = long_request(1);
  request.timeout_ms = 1000;
  Stream stream = fixture.submit(request);
  step(fixture, 50);
  EXPECT_EQ(fixture.engine->stats().num_paused, 1);
  EXPECT_LE(fixture.scheduler().wake_ns(), 1'100'000'000) << "the engine wakes for it";
  fixture.clock->advance_ms(2000);
  step(fixture, 1);
  EXPECT_TRUE(fixture.scheduler().is_idle());
  const Outcome got = read(stream);
  ASSERT_TRUE(got.error.has_value());
  EXPECT_EQ(got.error->code, ErrorCode::deadline_exceeded);
}

// Who reads one stream to its end before another must not wait forever.
TEST(EngineReaders, OneThatPausesGivesItsPlaceToOthersThatWait) {
  EngineOptions options = tight_options();
  options.max_sequences = 1;
  Fixture fixture(options);
  const Request first = long_request(1);
  const Request second = long_request(500);
  Stream first_stream = fixture.submit(first);
  step(fixture, 50);
  EXPECT_EQ(fixture.engine->stats().num_paused, 1);
  Stream second_stream = fixture.submit(second);
  expect_same(read_on(fixture, second_stream), expected(second, 200));
  expect_same(read_on(fixture, first_stream), expected(first, 200));
  fixture.expect_all_blocks_free();
}

TEST(EngineReaders, OneThatPausesGivesItsBlocksToOthersThatRun) {
  EngineOptions options = tight_options();
  options.kv_tokens = 200;
  Fixture fixture(options, {{.block_tokens = 16, .window = 0}});
  const Request first = long_request(1, 100);
  const Request second = long_request(500, 60);
  Stream first_stream = fixture.submit(first);
  step(fixture, 50);
  Stream second_stream = fixture.submit(second);
  expect_same(read_on(fixture, second_stream), expected(second, 200));
  expect_same(read_on(fixture, first_stream), expected(first, 200));
  fixture.expect_all_blocks_free();
}

TEST(EngineReaders, ScoresOfAPromptPauseToo) {
  Fixture fixture(tight_options());
  Request request = long_request(1, 140);
  request.num_prompt_logprobs = 5;
  Stream stream = fixture.submit(request);
  step(fixture, 20);
  EXPECT_EQ(fixture.engine->stats().num_paused, 1);
  EXPECT_LE(fixture.runner->num_rows(), 32) << "one step's scores are more than may be unread";
  expect_same(read_on(fixture, stream), expected(request, 200));
}

TEST(EngineReaders, ChoicesPauseTogether) {
  Fixture fixture(tight_options());
  Request request = long_request(1);
  request.num_choices = 3;
  Stream stream = fixture.submit(request);
  step(fixture, 50);
  EXPECT_EQ(fixture.engine->stats().num_paused, 3);
  std::vector<std::vector<TokenId>> got(3);
  size_t num_finished = 0;
  for (int i = 0; i < 1000 && num_finished < 3; ++i) {
    while (stream.wait_for(milliseconds(0))) {
      const auto event = stream.next();
      if (!event) break;
      if (const auto* token = std::get_if<TokenEvent>(&*event)) {
        got[static_cast<size_t>(token->choice)].push_back(token->id);
      }
      num_finished += std::holds_alternative<FinishEvent>(*event) ? 1 : 0;
    }
    step(fixture, 1);
  }
  for (int32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[static_cast<size_t>(i)], expected(request, 200, i).tokens);
  }
}

TEST(EngineReaders, WhoReadsOnWakesTheEngine) {
  Fixture fixture(tight_options());
  fixture.engine->start();
  const Request request = long_request(1);
  Stream stream = fixture.submit(request);
  uint64_t seen = 0;
  while (fixture.engine->stats().num_paused == 0) {
    seen = fixture.engine->wait_for_news(seen, milliseconds(100));
  }
  expect_same(read(stream), expected(request, 200));
}

TEST(EngineReaders, LogProbabilitiesAreBounded) {
  EngineOptions options = small_options();
  options.max_logprobs = 30;
  Fixture fixture(options);
  Request request = request_of({1, 2}, 5, 1);
  request.num_logprobs = request.num_prompt_logprobs = 30;
  EXPECT_TRUE(fixture.engine->submit(request).ok());
  request.num_logprobs = 31;
  const auto refused = fixture.engine->submit(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_range);
  EXPECT_EQ(refused.error().where, "num_logprobs");
  EXPECT_NE(refused.error().to_string().find("max_logprobs is 30"), std::string::npos);
  request.num_logprobs = -1;
  request.num_prompt_logprobs = 31;
  EXPECT_EQ(fixture.engine->submit(request).error().where, "num_prompt_logprobs");
}

}  // namespace
}  // namespace headrace
