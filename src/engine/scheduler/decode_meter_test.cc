// What steps of decoding read and took: which steps are counted, what they read, and for how long
// they are recent.
#include "engine/scheduler/decode_meter.h"

#include <gtest/gtest.h>

#include "engine/test_engine.h"

namespace headrace {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

DecodeWork steps(int64_t num) {
  return {.num_steps = num, .num_top_steps = 0, .ns = 10 * num, .kv_bytes = 100 * num};
}

TEST(DecodeWindow, ForgetsWhatIsOld) {
  DecodeWindow window;
  EXPECT_EQ(window.recent(5 * kSecond).num_steps, 0);
  window.add(3 * kSecond, steps(1));
  window.add(4 * kSecond - 1, steps(2));
  window.add(7 * kSecond, steps(4));
  EXPECT_EQ(window.recent(7 * kSecond).num_steps, 7);
  EXPECT_EQ(window.recent(7 * kSecond).ns, 70);
  EXPECT_EQ(window.recent(7 * kSecond).kv_bytes, 700);
  EXPECT_EQ(window.recent(13 * kSecond - 1).num_steps, 7);
  EXPECT_EQ(window.recent(13 * kSecond).num_steps, 4) << "the fourth second is over for ten";
  EXPECT_EQ(window.recent(17 * kSecond).num_steps, 0);
  // The slot of second 3 is that of second 13.
  window.add(13 * kSecond, steps(8));
  EXPECT_EQ(window.recent(13 * kSecond).num_steps, 12);
  EXPECT_EQ(window.recent(1000 * kSecond).num_steps, 0);
}

Request long_request(size_t num_prompt, int64_t max_tokens, TokenId first) {
  Request request = request_of(prompt_of(num_prompt, first), max_tokens, 1);
  request.stop.ignore_eos = true;
  return request;
}

/// Steps of up to 32 rows, a millisecond a row; blocks of 16 tokens have 100 bytes in each of two
/// groups, the second with a window of 20.
struct DecodingFixture : Fixture {
  DecodingFixture() : Fixture(small_options()) {
    runner->on_step([this](int64_t num_rows) { clock->advance_ms(num_rows); });
  }
};

TEST(DecodeMeter, CountsStepsWithoutPromptsAlone) {
  DecodingFixture fixture;
  Stream stream = fixture.submit(long_request(40, 4, 1));  // 32 and 8 rows, then 3 times one
  fixture.run_until_idle();
  const EngineStats stats = fixture.engine->stats();
  EXPECT_EQ(stats.num_steps, 5);
  EXPECT_EQ(stats.prompt_rows, 40);
  EXPECT_EQ(stats.decode.num_steps, 3);
  EXPECT_EQ(stats.decode.num_top_steps, 0) << "the checksum model says nothing of the sort";
  EXPECT_NEAR(static_cast<double>(stats.decode.ns) * 1e-6, 3, 0.1);
  // Rows at 40, 41 and 42; of the window 19 keys before each. A block has 16 tokens.
  EXPECT_EQ(stats.decode.kv_bytes,
            (40 * 100 / 16 + 19 * 100 / 16) + (41 * 100 / 16 + 118) + (42 * 100 / 16 + 118));
}

TEST(DecodeMeter, EachSequenceReadsItsOwnKeys) {
  DecodingFixture fixture;
  Stream one = fixture.submit(long_request(10, 3, 1));
  Stream two = fixture.submit(long_request(10, 3, 500));
  fixture.run_until_idle();
  const EngineStats stats = fixture.engine->stats();
  EXPECT_EQ(stats.decode.num_steps, 2);
  EXPECT_EQ(stats.decode.kv_bytes, 2 * (20 * 100 / 16) + 2 * (22 * 100 / 16));
}

TEST(DecodeMeter, APromptBesideThemMakesAStepAnother) {
  DecodingFixture fixture;
  Stream one = fixture.submit(long_request(10, 10, 1));
  fixture.engine->step(false);
  fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->stats().decode.num_steps, 1);
  Stream two = fixture.submit(long_request(20, 1, 500));
  fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->stats().decode.num_steps, 1);
  fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->stats().decode.num_steps, 2);
}

TEST(DecodeMeter, WhatIsRecentGoesOnWithoutSteps) {
  DecodingFixture fixture;
  Stream stream = fixture.submit(long_request(10, 5, 1));
  fixture.run_until_idle();
  EXPECT_EQ(fixture.engine->stats().recent_decode.num_steps, 4);
  fixture.clock->advance_ms(11'000);
  EXPECT_EQ(fixture.engine->stats().recent_decode.num_steps, 0);
  EXPECT_EQ(fixture.engine->stats().decode.num_steps, 4);
}

TEST(DecodeMeter, LargestLogitsAreEnoughForOneRowAlone) {
  DecodeMeter meter({}, {});
  Batch batch;
  const auto add_row = [&] {
    batch.sequences.push_back({.num_rows = 1, .sample = 0});
    batch.tokens.push_back(1);
    batch.samples.emplace_back();
  };
  add_row();
  meter.note(batch, 0, 1);
  batch.num_top = 1;
  meter.note(batch, 1, 2);
  add_row();
  meter.note(batch, 2, 3);
  EXPECT_EQ(meter.total().num_steps, 3);
  EXPECT_EQ(meter.total().num_top_steps, 1);
  batch.sequences[1].sample = -1;  // its prompt goes on later
  meter.note(batch, 3, 4);
  batch.clear();
  meter.note(batch, 4, 5);
  EXPECT_EQ(meter.total().num_steps, 3);
}

}  // namespace
}  // namespace headrace
