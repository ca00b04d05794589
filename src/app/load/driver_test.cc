// The driver on an engine with the checksum model: what each request must give is known.
#include "app/load/driver.h"

#include <gtest/gtest.h>

#include <numeric>

#include "app/load/test_load_spec.h"
#include "engine/test_engine.h"

namespace headrace {
namespace {

using test::load_spec;

std::vector<TokenId> checksum_vocabulary() {
  std::vector<TokenId> ids(kVocab);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

const LoadDriverHooks kNoDriverHooks = {[](const LoadProgress&) {}, [] { return false; }};

struct Driven {
  explicit Driven(const LoadSpec& spec, EngineOptions options = small_options())
      : workload(spec, checksum_vocabulary()), fixture(options) {
    fixture.engine->start();
  }

  LoadRecords run(const LoadPace& pace) {
    auto records = drive_load(*fixture.engine, workload, pace, kNoDriverHooks, SystemClock());
    EXPECT_TRUE(records.ok()) << records.error().to_string();
    return records.ok() ? std::move(records).value() : LoadRecords{};
  }

  /// The hash of what the checksum model answers in one turn of a conversation.
  uint64_t expected_hash(const LoadRecord& record) const {
    std::vector<TokenId> tokens;
    const auto turns = workload.conversation(record.conversation);
    for (int64_t turn = 0;; ++turn) {
      const LoadTurn& said = turns[static_cast<size_t>(turn)];
      tokens.insert(tokens.end(), said.tokens.begin(), said.tokens.end());
      Request request =
          request_of(tokens, said.num_output, workload.sampling_seed(record.conversation, turn));
      request.stop.ignore_eos = true;
      const auto answer = expected(request, 200).tokens;
      tokens.insert(tokens.end(), answer.begin(), answer.end());
      if (turn < record.turn) continue;
      return hash_tokens(static_cast<uint64_t>(record.conversation * 4096 + turn), answer);
    }
  }

  void expect_requests_right(const LoadRecords& records) const {
    for (const LoadRecord& record : records.requests) {
      ASSERT_TRUE(record.is_ok());
      EXPECT_EQ(static_cast<int64_t>(record.token_ns.size()), record.wanted_tokens);
      EXPECT_EQ(record.answer_hash, expected_hash(record));
      EXPECT_EQ(record.stats.prompt_tokens, record.prompt_tokens);
      EXPECT_EQ(record.stats.completion_tokens, record.wanted_tokens);
      EXPECT_LE(record.due_ns, record.submitted_ns);
      EXPECT_LE(record.submitted_ns, record.token_ns.front());
      EXPECT_TRUE(std::is_sorted(record.token_ns.begin(), record.token_ns.end()));
      EXPECT_LE(record.token_ns.back(), record.end_ns);
    }
  }

  /// And what was seen while they ran adds up.
  void expect_all_right(const LoadRecords& records) const {
    expect_requests_right(records);
    int64_t num_tokens = 0;
    for (const LoadRecord& record : records.requests) num_tokens += record.wanted_tokens;
    int64_t sampled_tokens = 0;
    int64_t sampled_steps = 0;
    int64_t sampled_first = 0;
    for (const LoadSample& sample : records.samples) {
      sampled_tokens += sample.num_tokens;
      sampled_steps += sample.num_steps;
      sampled_first += sample.num_first;
    }
    EXPECT_EQ(sampled_tokens, num_tokens);
    EXPECT_EQ(sampled_first, static_cast<int64_t>(records.requests.size()));
    EXPECT_EQ(sampled_steps, records.after.num_steps - records.before.num_steps);
  }

  LoadWorkload workload;
  Fixture fixture;
};

/// The most requests that were in the engine at once.
int64_t most_at_once(const LoadRecords& records) {
  int64_t most = 0;
  for (const LoadRecord& one : records.requests) {
    int64_t at_once = 0;
    for (const LoadRecord& other : records.requests) {
      at_once += other.submitted_ns <= one.submitted_ns && one.submitted_ns < other.end_ns ? 1 : 0;
    }
    most = std::max(most, at_once);
  }
  return most;
}

TEST(LoadDriver, ClosedLoop) {
  Driven driven(load_spec("5..40", "1..20"));
  const LoadRecords records = driven.run({.concurrency = 3, .num_requests = 40});
  EXPECT_EQ(records.requests.size(), 40U);
  EXPECT_EQ(records.num_conversations, 40);
  EXPECT_LE(most_at_once(records), 3);
  driven.expect_all_right(records);
}

TEST(LoadDriver, TheSameLoadGivesTheSameAnswers) {
  const LoadSpec spec = load_spec("5..40", "1..20");
  const LoadRecords slow = Driven(spec).run({.concurrency = 1, .num_requests = 20});
  const LoadRecords fast = Driven(spec).run({.rate = 1e4, .num_requests = 20});
  EXPECT_EQ(slow.fingerprint, fast.fingerprint);
  uint64_t slow_hash = 0, fast_hash = 0;
  for (const LoadRecord& record : slow.requests) slow_hash ^= record.answer_hash;
  for (const LoadRecord& record : fast.requests) fast_hash ^= record.answer_hash;
  EXPECT_EQ(slow_hash, fast_hash);
  LoadSpec other = spec;
  other.seed = 4;
  EXPECT_NE(Driven(other).run({.concurrency = 1, .num_requests = 20}).fingerprint,
            slow.fingerprint);
}

TEST(LoadDriver, Conversations) {
  LoadSpec spec = load_spec("5..20", "1..10");
  spec.num_turns = 4;
  spec.prefix_tokens = 32;
  spec.num_prefixes = 2;
  Driven driven(spec);
  const LoadRecords records = driven.run({.concurrency = 4, .num_requests = 8});
  ASSERT_EQ(records.requests.size(), 32U);
  driven.expect_all_right(records);
  int64_t num_cached = 0;
  for (const LoadRecord& record : records.requests) {
    if (record.turn == 0) continue;
    num_cached += record.stats.cached_tokens > 0 ? 1 : 0;
    const auto before = std::find_if(
        records.requests.begin(), records.requests.end(), [&](const LoadRecord& other) {
          return other.conversation == record.conversation && other.turn == record.turn - 1;
        });
    ASSERT_NE(before, records.requests.end());
    EXPECT_EQ(record.due_ns, before->end_ns);
    EXPECT_GT(record.prompt_tokens, before->prompt_tokens + before->wanted_tokens);
  }
  EXPECT_GT(num_cached, 12);
}

TEST(LoadDriver, StaticBatchesWaitForTheirLast) {
  Driven driven(load_spec("5..20", "1..40"));
  const LoadRecords records = driven.run({.concurrency = 6, .num_requests = 18, .static_batch = 3});
  ASSERT_EQ(records.requests.size(), 18U);
  driven.expect_all_right(records);
  for (size_t i = 3; i < records.requests.size(); ++i) {
    const size_t batch = i / 3 * 3;
    for (size_t j = batch - 3; j < batch; ++j) {
      EXPECT_GE(records.requests[i].submitted_ns, records.requests[j].end_ns) << i << " " << j;
    }
  }
  EXPECT_EQ(most_at_once(records), 3);
}

TEST(LoadDriver, PaddingIsComputedAndNotCounted) {
  Driven plain(load_spec("5..20", "1..40"));
  Driven padded(load_spec("5..20", "1..40"));
  LoadPace pace{.concurrency = 6, .num_requests = 18, .static_batch = 3};
  const LoadRecords without = plain.run(pace);
  pace.pads = true;
  const LoadRecords with = padded.run(pace);
  const auto generated = [](const LoadRecords& records) {
    return records.after.generated_tokens - records.before.generated_tokens;
  };
  int64_t num_wanted = 0;
  int64_t num_computed = 0;
  for (size_t i = 0; i < with.requests.size(); i += 3) {
    int64_t longest = 0;
    for (size_t j = i; j < i + 3; ++j) {
      EXPECT_EQ(std::ssize(with.requests[j].token_ns), with.requests[j].wanted_tokens);
      EXPECT_EQ(with.requests[j].answer_hash, without.requests[j].answer_hash);
      num_wanted += with.requests[j].wanted_tokens;
      longest = std::max(longest, with.requests[j].wanted_tokens);
    }
    num_computed += 3 * longest;
  }
  EXPECT_EQ(generated(without), num_wanted);
  EXPECT_EQ(generated(with), num_computed);
}

TEST(LoadDriver, ArrivalsDoNotWaitForAnswers) {
  Driven driven(load_spec("5..20", "30"));
  const LoadRecords records = driven.run({.rate = 500, .num_requests = 30});
  ASSERT_EQ(records.requests.size(), 30U);
  driven.expect_all_right(records);
  int64_t due_ns = 0;
  for (size_t i = 0; i < records.requests.size(); ++i) {
    due_ns += static_cast<int64_t>(driven.workload.gap(static_cast<int64_t>(i)) / 500 * 1e9);
    EXPECT_NEAR(static_cast<double>(records.requests[i].due_ns), static_cast<double>(due_ns), 50);
  }
}

TEST(LoadDriver, EndsWithItsTime) {
  for (const double rate : {0.0, 300.0}) {
    Driven driven(load_spec("5..20", "5"));
    const LoadRecords records = driven.run({.rate = rate, .concurrency = 2, .seconds = 0.1});
    EXPECT_GE(records.requests.size(), 2U);
    for (const LoadRecord& record : records.requests) {
      EXPECT_TRUE(record.is_ok()) << "what began is finished";
      EXPECT_LT(record.due_ns, 100'000'000);
    }
    EXPECT_TRUE(rate == 0 || records.requests.back().due_ns > 50'000'000);
  }
}

TEST(LoadDriver, AFullQueueIsTakenDown) {
  EngineOptions options = small_options();
  options.max_sequences = 1;
  options.max_waiting = 1;
  Driven driven(load_spec("100", "60"), options);
  const LoadRecords records = driven.run({.rate = 1e6, .num_requests = 50});
  ASSERT_EQ(records.requests.size(), 50U);
  int64_t num_ok = 0;
  for (const LoadRecord& record : records.requests) {
    num_ok += record.is_ok() ? 1 : 0;
    EXPECT_EQ(record.error.value_or(ErrorCode::overloaded), ErrorCode::overloaded);
  }
  EXPECT_GE(num_ok, 1);
  EXPECT_LT(num_ok, 50);
}

TEST(LoadDriver, WhatTheEngineCannotServeIsAnError) {
  Driven driven(load_spec("300", "5"));
  const auto records = drive_load(*driven.fixture.engine, driven.workload, {.num_requests = 1},
                                  kNoDriverHooks, SystemClock());
  ASSERT_FALSE(records.ok());
  EXPECT_EQ(records.error().code, ErrorCode::context_length_exceeded);
}

TEST(LoadDriver, StopsWhenAsked) {
  Driven driven(load_spec("10", "100"));
  int64_t num_done = 0;
  const LoadDriverHooks hooks = {[&](const LoadProgress& now) { num_done = now.num_done; },
                                 [&] { return num_done >= 3; }};
  const auto records = drive_load(*driven.fixture.engine, driven.workload,
                                  {.concurrency = 2, .seconds = 100}, hooks, SystemClock());
  ASSERT_TRUE(records.ok());
  EXPECT_TRUE(records->was_stopped);
  // Those that ended, whole and right, and none of those that had not.
  EXPECT_GE(std::ssize(records->requests), 3);
  driven.expect_requests_right(*records);
  EXPECT_EQ(driven.fixture.engine->stats().num_running, 0);
}

}  // namespace
}  // namespace headrace
