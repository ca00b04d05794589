// The engine where its blocks run short: each rung of what it does then, in order, and what a full
// pool is used for.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/fallback_engine.h"
#include "engine/test_engine.h"

namespace headrace {
namespace {

const std::vector<CacheGeometry> kOneGroup{{.block_tokens = 16, .window = 0}};

EngineOptions tight_options(int64_t kv_tokens) {
  EngineOptions options;
  options.context = 400;
  options.chunk_tokens = 64;
  options.max_sequences = 4;
  options.kv_tokens = kv_tokens;
  return options;
}

int64_t rung(const Fixture& fixture, MemoryRung which) {
  return fixture.engine->stats().rung(which);
}

Request long_request(TokenId first, size_t num_prompt, int64_t max_tokens) {
  Request request = request_of(prompt_of(num_prompt, first), max_tokens, 5);
  request.stop.ignore_eos = true;
  return request;
}

TEST(MemoryLadder, UnusedPrefixesGoFirst) {
  Fixture fixture(tight_options(400), kOneGroup);
  for (TokenId i = 0; i < 4; ++i) {
    const Request request = long_request(100 * i, 150, 4);
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    expect_same(read(stream), expected(request, 400));
  }
  EXPECT_GT(rung(fixture, MemoryRung::evict_prefixes), 0);
  EXPECT_EQ(rung(fixture, MemoryRung::preempt), 0);
  EXPECT_EQ(rung(fixture, MemoryRung::drop_caches), 0);
}

TEST(MemoryLadder, ThenOtherCachesOfTheProcess) {
  EngineOptions options = tight_options(400);
  int num_dropped = 0;
  options.drop_caches = [&] { ++num_dropped; };
  Fixture fixture(options, kOneGroup);
  auto first = fixture.submit(long_request(0, 200, 20));
  auto second = fixture.submit(long_request(300, 200, 20));
  fixture.run_until_idle();
  EXPECT_EQ(num_dropped, 1) << "once for each time that memory runs short";
  EXPECT_EQ(rung(fixture, MemoryRung::drop_caches), 1);
  EXPECT_EQ(rung(fixture, MemoryRung::preempt), 0);
}

TEST(MemoryLadder, ThenNobodyIsAdmitted) {
  Fixture fixture(tight_options(400), kOneGroup);
  const Request first = long_request(0, 240, 20);
  const Request second = long_request(300, 240, 20);
  auto first_stream = fixture.submit(first);
  auto second_stream = fixture.submit(second);
  for (int i = 0; i < 6; ++i) fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 1U);
  EXPECT_GT(rung(fixture, MemoryRung::stop_admitting), 0);
  fixture.run_until_idle();
  expect_same(read(first_stream), expected(first, 400));
  expect_same(read(second_stream), expected(second, 400));
  EXPECT_EQ(rung(fixture, MemoryRung::preempt), 0);
}

TEST(MemoryLadder, ThenPromptsShrinkThenFewerRunThenOneBeginsAgain) {
  Fixture fixture(tight_options(448), kOneGroup);
  std::vector<Request> requests{long_request(0, 40, 250), long_request(300, 40, 250),
                                long_request(600, 40, 250)};
  std::vector<Stream> streams;
  for (const Request& request : requests) streams.push_back(fixture.submit(request));
  do {
    fixture.engine->step(false);
    fixture.scheduler().check_invariants();
    ASSERT_FALSE(fixture.scheduler().is_idle());
  } while (rung(fixture, MemoryRung::preempt) == 0);
  EXPECT_EQ(fixture.engine->stats().batch_limit, 2);
  EXPECT_EQ(rung(fixture, MemoryRung::lower_batch), 1);
  fixture.run_until_idle();
  std::vector<int64_t> num_preemptions;
  for (size_t i = 0; i < streams.size(); ++i) {
    const Outcome got = read(streams[i]);
    expect_same(got, expected(requests[i], 400));
    num_preemptions.push_back(got.finish->stats.num_preemptions);
  }
  EXPECT_EQ(num_preemptions[0], 0) << "the first one never stops";
  EXPECT_GT(num_preemptions[2], 0);
  EXPECT_EQ(fixture.engine->stats().batch_limit, 4) << "with room again, as many as before";
  fixture.expect_all_blocks_free();
}

// Though the one that goes on does not end: room was lost to one that is gone.
TEST(MemoryLadder, MoreRunAgainWhenNobodyHadToGiveWayForAWhile) {
  Fixture fixture(tight_options(448), kOneGroup);
  auto long_stream = fixture.submit(long_request(0, 40, 250));
  auto other = fixture.submit(long_request(300, 200, 190));
  do {
    fixture.engine->step(false);
    ASSERT_FALSE(fixture.scheduler().is_idle());
  } while (rung(fixture, MemoryRung::preempt) == 0);
  ASSERT_EQ(fixture.engine->stats().batch_limit, 1);
  other.cancel();
  const Request small = long_request(900, 4, 3);
  auto small_stream = fixture.submit(small);
  for (int i = 0; i < 40; ++i) fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 1U) << "the long one";
  EXPECT_EQ(fixture.engine->stats().num_length, 1) << "the small one";
  expect_same(read(small_stream), expected(small, 400));
}

// It needs more room than is left beside those that began again before it, and others keep coming.
TEST(MemoryLadder, WhoseStepFailedIsNotOvertakenForever) {
  Fixture fixture(tight_options(496), kOneGroup);
  std::vector<Request> requests{long_request(0, 60, 80), long_request(300, 60, 80),
                                long_request(600, 280, 60)};
  std::vector<Stream> streams;
  for (const Request& request : requests) streams.push_back(fixture.submit(request));
  while (fixture.scheduler().cache().groups().front().pool().num_unreferenced() > 0) {
    fixture.engine->step(false);
    ASSERT_FALSE(fixture.scheduler().is_idle());
  }
  ASSERT_EQ(fixture.scheduler().num_running(), 3U);
  fixture.runner->fail_next_step();
  std::vector<Stream> others;
  for (int i = 0; i < 400; ++i) {
    if (fixture.scheduler().num_waiting() < 8) {
      others.push_back(fixture.submit(long_request(static_cast<TokenId>(i), 60, 60)));
    }
    fixture.engine->step(false);
    if (i == 10) {
      EXPECT_EQ(fixture.scheduler().num_running(), 2U) << "nobody begins before it";
    }
  }
  EXPECT_EQ(fixture.engine->stats().num_failed_steps, 1);
  for (size_t i = 0; i < streams.size(); ++i) {
    SCOPED_TRACE(i);
    std::vector<TokenId> tokens;
    bool has_ended = false;
    while (!has_ended && streams[i].wait_for(std::chrono::milliseconds(0))) {
      const auto event = streams[i].next();
      has_ended = !event.has_value();
      if (!event) continue;
      if (const auto* token = std::get_if<TokenEvent>(&*event)) tokens.push_back(token->id);
    }
    EXPECT_TRUE(has_ended);
    EXPECT_EQ(tokens, expected(requests[i], 400).tokens);
  }
}

TEST(MemoryLadder, TheLowestClassGivesWay) {
  Fixture fixture(tight_options(400), kOneGroup);
  Request urgent = long_request(0, 40, 250);
  Request patient = long_request(300, 40, 250);
  patient.priority = 3;
  auto patient_stream = fixture.submit(patient);
  fixture.engine->step(false);
  urgent.priority = -1;
  auto urgent_stream = fixture.submit(urgent);
  fixture.run_until_idle();
  const Outcome first = read(urgent_stream);
  const Outcome second = read(patient_stream);
  expect_same(first, expected(urgent, 400));
  expect_same(second, expected(patient, 400));
  EXPECT_EQ(first.finish->stats.num_preemptions, 0);
  EXPECT_GT(second.finish->stats.num_preemptions, 0);
}

TEST(MemoryLadder, PromptsTakeWhatIsLeft) {
  // One that generates takes blocks that the other's prompt was admitted for.
  EngineOptions options = tight_options(400);
  options.chunk_tokens = 4;
  Fixture fixture(options, kOneGroup);
  const Request first = long_request(0, 16, 220);
  const Request second = long_request(300, 350, 2);
  auto first_stream = fixture.submit(first);
  fixture.engine->step(false);
  fixture.engine->step(false);
  auto second_stream = fixture.submit(second);
  fixture.run_until_idle();
  EXPECT_GT(rung(fixture, MemoryRung::shrink_chunks), 0);
  expect_same(read(first_stream), expected(first, 400));
  expect_same(read(second_stream), expected(second, 400));
}

TEST(MemoryLadder, PastTheWholePoolIsRefusedAtTheDoor) {
  Fixture fixture(tight_options(200), kOneGroup);
  EXPECT_EQ(fixture.engine->max_context(), 256) << "sixteen blocks, with one in part for each";
  const auto refused = fixture.engine->submit(long_request(0, 200, 100));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::context_length_exceeded);
  for (const char* text : {"200", "100", "256", "KV cache"}) {
    EXPECT_NE(refused.error().message.find(text), std::string::npos) << refused.error().message;
  }
}

/// An engine that runs on its own thread, and holds as few requests as that.
std::unique_ptr<Engine> threaded(const std::string& name, int64_t max_waiting, bool runs) {
  EngineOptions options = tight_options(400);
  options.max_waiting = max_waiting;
  ModelInfo info;
  info.name = name;
  info.vocab_size = kVocab;
  const auto num_blocks = engine_blocks(options, kOneGroup);
  EngineParts parts;
  parts.runner = std::make_unique<ChecksumRunner>(info, kOneGroup, num_blocks);
  parts.clock = std::make_shared<StepClock>();
  parts.random = std::make_shared<CountingRandom>();
  auto engine = std::make_unique<EngineImpl>(std::move(parts), options, kOneGroup, num_blocks);
  if (runs) engine->start();
  return engine;
}

TEST(MemoryLadder, ALighterModelAnswersWhereThatIsAllowed) {
  // The first takes one request and does not get to it.
  auto both = make_fallback_engine(threaded("heavy", 1, false), threaded("light", 9, true), {});
  ASSERT_TRUE(both.ok());
  Engine& engine = **both;
  Request request = long_request(0, 40, 5);
  const auto waiting = engine.submit(request);
  ASSERT_TRUE(waiting.ok());
  const auto refused = engine.submit(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  request.may_use_lighter_model = true;
  auto stream = engine.submit(request);
  ASSERT_TRUE(stream.ok());
  const Outcome got = read(*stream);
  expect_same(got, expected(request, 400));
  EXPECT_EQ(got.finish->stats.model, "light");
  EXPECT_EQ(engine.stats().rung(MemoryRung::lighter_model), 1);
  EXPECT_EQ(engine.model().name, "heavy");
}

TEST(MemoryLadder, ALighterModelMustReadTheSameTokens) {
  const auto both =
      make_fallback_engine(threaded("heavy", 1, false), threaded("light", 9, false),
                           {.tokenizer_fingerprint = "a", .lighter_tokenizer_fingerprint = "b"});
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().code, ErrorCode::mismatch);
}

// A full pool over many requests of random lengths: nearly all slots of held blocks are in use, and
// it does not get worse. Beside it, what a cache would use that sets aside the longest length for
// each, as engines without blocks do.
// No blocks are kept for those that have all they will ever need.
TEST(KvUtilisation, ACacheForSoManyHasRoomForSoMany) {
  EngineOptions options = tight_options(0);
  options.max_sequences = 8;
  options.kv_tokens = 8 * 32;
  options.kv_bytes = 1;  // no blocks besides
  Fixture fixture(options, kOneGroup);
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 8; ++i) streams.push_back(fixture.submit(long_request(50 * i, 20, 12)));
  for (int i = 0; i < 4; ++i) fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 8U);
  fixture.run_until_idle();
  EXPECT_EQ(rung(fixture, MemoryRung::preempt), 0);
}

TEST(KvUtilisation, StaysHighAtAFullPool) {
  constexpr int64_t kContext = 2000;
  constexpr int kNumRequests = 10000;
  EngineOptions options;
  options.context = kContext;
  options.chunk_tokens = 512;
  options.max_sequences = 64;
  options.kv_tokens = 8 * kContext;
  options.prefix_cache = false;  // blocks that are only cached are left out
  Fixture fixture(options, kOneGroup);
  std::mt19937 random(1);
  std::vector<Stream> streams;
  int num_submitted = 0;
  double early = 0;
  double late = 0;
  double contiguous = 0;
  int64_t num_early = 0;
  int64_t num_late = 0;
  int64_t num_full = 0;
  while (num_submitted < kNumRequests || !fixture.scheduler().is_idle()) {
    while (num_submitted < kNumRequests && fixture.scheduler().num_waiting() < 32) {
      const size_t num_prompt = 200 + random() % 800;
      Request request = long_request(static_cast<TokenId>(random() % 1000), num_prompt,
                                     static_cast<int64_t>(20 + random() % 20));
      streams.push_back(fixture.submit(request));
      ++num_submitted;
      fixture.engine->step(false);
    }
    fixture.engine->step(false);
    std::erase_if(streams, [](Stream& stream) {
      while (stream.wait_for(std::chrono::milliseconds(0))) {
        if (!stream.next()) return true;
      }
      return false;
    });
    const EngineStats stats = fixture.engine->stats();
    const KvGroupStats& group = stats.groups.front();
    if (group.num_held * 10 < group.num_blocks * 9) continue;  // it is being filled or emptied
    ++num_full;
    contiguous +=
        static_cast<double>(group.live_tokens) / static_cast<double>(stats.num_running * kContext);
    if (num_submitted < kNumRequests / 4) {
      early += stats.token_slot_utilisation();
      ++num_early;
    } else if (num_submitted > kNumRequests * 3 / 4) {
      late += stats.token_slot_utilisation();
      ++num_late;
    }
  }
  ASSERT_GT(num_early, 100);
  ASSERT_GT(num_late, 100);
  early /= static_cast<double>(num_early);
  late /= static_cast<double>(num_late);
  contiguous /= static_cast<double>(num_full);
  RecordProperty("utilisation", std::to_string(late));
  std::printf(
      "token slots in use: %.4f at first, %.4f at last; with %d slots set aside for each "
      "sequence: %.4f\n",
      early, late, static_cast<int>(kContext), contiguous);
  EXPECT_GT(early, 0.96);
  EXPECT_GT(late, 0.96);
  EXPECT_GT(late, early - 0.005);
  EXPECT_LT(contiguous, 0.6);
}

}  // namespace
}  // namespace headrace
