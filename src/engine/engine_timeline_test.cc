// The timeline of a completion: each of its steps, within bounds, and only where it was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/test_engine.h"

namespace headrace {
namespace {

Request timed_request(size_t num_prompt, TokenId first, int64_t max_tokens) {
  Request request = request_of(prompt_of(num_prompt, first), max_tokens, 4);
  request.stop.ignore_eos = true;
  request.keeps_timeline = true;
  return request;
}

/// What the entries have in all, which must be what the completion was.
TimelineEntry sum_of(const Timeline& timeline) {
  TimelineEntry sum;
  sum.num_steps = 0;
  double last_ms = 0;
  for (const TimelineEntry& entry : timeline.entries) {
    EXPECT_GE(entry.start_ms, last_ms);
    last_ms = entry.start_ms;
    sum.duration_ms += entry.duration_ms;
    sum.sampling_ms += entry.sampling_ms;
    sum.rows += entry.rows;
    sum.num_steps += entry.num_steps;
    sum.num_tokens += entry.num_tokens;
    sum.num_pauses += entry.num_pauses;
    sum.num_preemptions += entry.num_preemptions;
  }
  EXPECT_GE(timeline.end_ms, last_ms);
  return sum;
}

TEST(Timeline, HasEveryStep) {
  Fixture fixture(small_options());  // steps of up to 32 rows
  fixture.runner->on_step([&](int64_t num_rows) { fixture.clock->advance_ms(num_rows); });
  fixture.clock->advance_ms(5000);
  Stream stream = fixture.submit(timed_request(70, 1, 3));
  fixture.clock->advance_ms(100);
  fixture.run_until_idle();
  const Outcome got = read(stream);
  const auto& timeline = got.finish->timeline;
  ASSERT_NE(timeline, nullptr);
  ASSERT_EQ(timeline->entries.size(), 5U);
  const std::vector<int64_t> rows{32, 32, 6, 1, 1};
  double start_ms = 100;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TimelineEntry& entry = timeline->entries[i];
    EXPECT_EQ(entry.rows, rows[i]);
    EXPECT_EQ(entry.step_rows, rows[i]);
    EXPECT_EQ(entry.step_sequences, 1);
    EXPECT_EQ(entry.num_steps, 1);
    EXPECT_EQ(entry.num_tokens, i < 2 ? 0 : 1);
    EXPECT_NEAR(entry.start_ms, start_ms, 0.5);
    EXPECT_NEAR(entry.duration_ms, static_cast<double>(rows[i]), 0.5);
    start_ms += static_cast<double>(rows[i]);
  }
  EXPECT_NEAR(timeline->end_ms, start_ms, 0.5);
  EXPECT_NEAR(timeline->entries[0].start_ms, got.finish->stats.queue_ms, 0.1);
  EXPECT_FALSE(timeline->is_incomplete);
}

TEST(Timeline, IsKeptForWhoAsksOnly) {
  Fixture fixture(small_options());
  Request other = timed_request(20, 300, 4);
  other.keeps_timeline = false;
  Request request = timed_request(10, 1, 4);
  request.num_choices = 2;
  Stream first = fixture.submit(other);
  Stream second = fixture.submit(request);
  fixture.run_until_idle();
  EXPECT_EQ(read(first).finish->timeline, nullptr);
  const auto choices = read_choices(second, 2);
  for (const Outcome& choice : choices) {
    ASSERT_NE(choice.finish->timeline, nullptr);
    const Timeline& timeline = *choice.finish->timeline;
    EXPECT_EQ(sum_of(timeline).num_tokens, 4);
    EXPECT_EQ(timeline.entries.back().step_sequences, 2) << "the other one has ended";
    EXPECT_EQ(timeline.entries.back().step_rows, 2);
  }
  EXPECT_NE(choices[0].finish->timeline, choices[1].finish->timeline);
  // The prompt was computed once.
  EXPECT_EQ(sum_of(*choices[0].finish->timeline).rows, 10 + 3);
  EXPECT_EQ(sum_of(*choices[1].finish->timeline).rows, 1 + 3);
}

TEST(Timeline, TellsOfPreemptions) {
  EngineOptions options = small_options();
  options.kv_tokens = 240;
  Fixture fixture(options, {{.block_tokens = 16, .window = 0}});
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 3; ++i) streams.push_back(fixture.submit(timed_request(60, 9 * i, 60)));
  fixture.run_until_idle();
  int64_t num_preemptions = 0;
  for (Stream& stream : streams) {
    const Outcome got = read(stream);
    const Timeline& timeline = *got.finish->timeline;
    EXPECT_EQ(timeline.num_preemptions, got.finish->stats.num_preemptions);
    EXPECT_EQ(sum_of(timeline).num_preemptions, timeline.num_preemptions);
    EXPECT_EQ(sum_of(timeline).num_tokens, 60);
    num_preemptions += timeline.num_preemptions;
  }
  EXPECT_GT(num_preemptions, 0);
}

TEST(Timeline, TellsOfPauses) {
  EngineOptions options = small_options();
  options.max_unread_bytes = 8 * sizeof(Event);
  Fixture fixture(options);
  Stream stream = fixture.submit(timed_request(20, 1, 12));
  for (int i = 0; i < 20; ++i) fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->stats().num_paused, 1);
  fixture.clock->advance_ms(700);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(stream.next());
  fixture.run_until_idle();
  const auto timeline = read(stream).finish->timeline;
  EXPECT_EQ(timeline->num_pauses, 1);
  const auto after = std::find_if(timeline->entries.begin(), timeline->entries.end(),
                                  [](const TimelineEntry& entry) { return entry.num_pauses > 0; });
  ASSERT_NE(after, timeline->entries.end());
  ASSERT_NE(after, timeline->entries.begin());
  EXPECT_GE(after->start_ms - (after - 1)->start_ms, 700);
}

TEST(Timeline, OneThatIsCancelledHasWhatThereWas) {
  Fixture fixture(small_options());
  Stream stream = fixture.submit(timed_request(40, 1, 20));
  for (int i = 0; i < 4; ++i) fixture.engine->step(false);
  stream.cancel();
  fixture.run_until_idle();
  const auto timeline = read(stream).finish->timeline;
  ASSERT_NE(timeline, nullptr);
  EXPECT_EQ(sum_of(*timeline).num_steps, 4);
  EXPECT_EQ(sum_of(*timeline).num_tokens, 3);
}

TEST(Timeline, AStepThatFailedIsARestart) {
  Fixture fixture(small_options());
  fixture.runner->fail_next_step();
  Stream stream = fixture.submit(timed_request(10, 1, 2));
  fixture.run_until_idle();
  const auto timeline = read(stream).finish->timeline;
  EXPECT_EQ(timeline->entries.size(), 2U);
  EXPECT_EQ(timeline->entries[0].num_preemptions, 1);
}

TEST(TimelineRecorder, KeepsItsBoundsAndTheSums) {
  constexpr size_t kMost = Timeline::kMaxSteps + Timeline::kMaxMerged;
  static_assert(kMost * sizeof(TimelineEntry) <= 72 << 10);
  TimelineRecorder recorder(1'000'000);
  int64_t now_ns = 1'000'000;
  for (int32_t i = 1; i <= 1'000'000; ++i) {
    if (i % 1000 == 0) recorder.note_pause();
    recorder.add({.start_ns = now_ns,
                  .end_ns = now_ns + 500'000,
                  .sampling_ns = 1000,
                  .rows = 1,
                  .step_rows = 3,
                  .step_sequences = 2,
                  .gave_token = true});
    now_ns += 1'000'000;
    const Timeline& timeline = recorder.timeline();
    ASSERT_LE(timeline.entries.size(), kMost);
    if (i % 9973 != 0 && i != 1025 && i != 1'000'000) continue;
    const TimelineEntry sum = sum_of({.entries = timeline.entries, .end_ms = 1e9});
    EXPECT_EQ(sum.num_steps, i);
    EXPECT_EQ(sum.rows, i);
    EXPECT_EQ(sum.num_tokens, i);
    EXPECT_EQ(sum.num_pauses, i / 1000);
    EXPECT_NEAR(sum.duration_ms, 0.5 * i, 1e-3);
  }
  const auto& entries = recorder.timeline().entries;
  EXPECT_LE(entries.capacity(), kMost);
  for (size_t i = 0; i < Timeline::kMaxSteps; ++i) {
    ASSERT_EQ(entries[i].num_steps, 1);
    ASSERT_DOUBLE_EQ(entries[i].start_ms, static_cast<double>(i));
  }
  const int32_t merged = entries[Timeline::kMaxSteps].num_steps;
  EXPECT_GT(merged, 1);
  for (size_t i = Timeline::kMaxSteps; i + 1 < entries.size(); ++i) {
    ASSERT_EQ(entries[i].num_steps, merged);
    ASSERT_EQ(entries[i].step_rows, 3 * merged);
    ASSERT_EQ(entries[i].step_sequences, 2 * merged);
  }
}

}  // namespace
}  // namespace headrace
