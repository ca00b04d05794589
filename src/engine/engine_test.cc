// Scheduler, block tables and engine together, on the checksum model: no files, no threads but
// where a test says so, virtual time.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "base/check.h"
#include "engine/checksum_runner.h"
#include "engine/engine_impl.h"

namespace headrace {
namespace {

constexpr int64_t kVocab = 1000;
constexpr TokenId kEnd = 7;

/// Moves on by a millisecond at each look. Thread-safe, as every Clock.
class StepClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_ += 1000000; }
  int64_t unix_seconds() const override { return 0; }

 private:
  mutable std::atomic<int64_t> now_ns_ = 0;
};

class CountingRandom final : public RandomSource {
 public:
  uint64_t next_u64() override { return ++last_; }

 private:
  uint64_t last_ = 40;
};

struct Fixture {
  explicit Fixture(EngineOptions options,
                   std::vector<CacheGeometry> geometries = {{.block_tokens = 16, .window = 0},
                                                            {.block_tokens = 16, .window = 20}}) {
    const auto num_blocks = engine_blocks(options, geometries);
    ModelInfo info;
    info.name = "checksum";
    info.vocab_size = kVocab;
    info.end_tokens = {kEnd};
    auto made = std::make_unique<ChecksumRunner>(info, geometries, num_blocks);
    runner = made.get();
    EngineParts parts;
    parts.runner = std::move(made);
    parts.clock = std::make_shared<StepClock>();
    parts.random = std::make_shared<CountingRandom>();
    engine = std::make_unique<EngineImpl>(std::move(parts), options, geometries, num_blocks);
  }

  void run_until_idle() {
    do {
      engine->step(false);
      engine->scheduler().check_invariants();
    } while (!engine->scheduler().is_idle());
  }

  void expect_all_blocks_free() const {
    for (const CacheGroup& group : engine->scheduler().groups()) {
      EXPECT_EQ(group.pool().num_unreferenced(), group.pool().num_blocks());
      EXPECT_EQ(group.num_reserved(), 0);
    }
  }

  ChecksumRunner* runner = nullptr;
  std::unique_ptr<EngineImpl> engine;
};

EngineOptions small_options() {
  EngineOptions options;
  options.context = 200;
  options.chunk_tokens = 32;
  options.max_sequences = 4;
  options.kv_tokens = 4 * 200;
  return options;
}

Request request_of(std::vector<TokenId> prompt, int64_t max_tokens, uint64_t seed) {
  Request request;
  request.prompt = std::move(prompt);
  request.stop.max_tokens = max_tokens;
  request.sampling.seed = seed;
  return request;
}

std::vector<TokenId> prompt_of(size_t size, TokenId first) {
  std::vector<TokenId> prompt(size);
  for (size_t i = 0; i < size; ++i) {
    prompt[i] = static_cast<TokenId>((static_cast<size_t>(first) + 31 * i) % kVocab);
  }
  return prompt;
}

struct Outcome {
  std::vector<TokenId> tokens;
  std::optional<FinishEvent> finish;
  std::optional<Error> error;
};

/// Reads a stream to its end.
Outcome read(Stream& stream) {
  Outcome out;
  while (auto event = stream.next()) {
    EXPECT_FALSE(out.finish || out.error) << "an event after the last";
    if (const auto* token = std::get_if<TokenEvent>(&*event)) out.tokens.push_back(token->id);
    if (const auto* finish = std::get_if<FinishEvent>(&*event)) out.finish = *finish;
    if (const auto* error = std::get_if<ErrorEvent>(&*event)) out.error = error->error;
  }
  EXPECT_TRUE(out.finish || out.error);
  return out;
}

/// What the request must give, by the checksum model's own rule.
Outcome expected(const Request& request, int64_t context) {
  Outcome out;
  std::vector<TokenId> tokens = request.prompt;
  int64_t left = context - static_cast<int64_t>(tokens.size());
  if (request.stop.max_tokens >= 0) left = std::min(left, request.stop.max_tokens);
  FinishEvent finish;
  finish.reason = FinishReason::length;
  for (; left > 0; --left) {
    const TokenId id = checksum_next(tokens, *request.sampling.seed, kVocab);
    if (id == kEnd && !request.stop.ignore_eos) {
      finish.reason = FinishReason::stop;
      finish.stop_token = id;
      break;
    }
    tokens.push_back(id);
    out.tokens.push_back(id);
  }
  out.finish = finish;
  return out;
}

void expect_same(const Outcome& got, const Outcome& want) {
  ASSERT_TRUE(got.finish.has_value()) << (got.error ? got.error->to_string() : "");
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.finish->reason, want.finish->reason);
  EXPECT_EQ(got.finish->stop_token, want.finish->stop_token);
}

TEST(Engine, OneRequest) {
  Fixture fixture(small_options());
  const Request request = request_of(prompt_of(50, 3), 10, 1);
  auto stream = fixture.engine->submit(request);
  ASSERT_TRUE(stream.ok());
  fixture.run_until_idle();
  const Outcome got = read(*stream);
  expect_same(got, expected(request, 200));
  const RequestStats& stats = got.finish->stats;
  EXPECT_EQ(stats.prompt_tokens, 50);
  EXPECT_EQ(stats.completion_tokens, 10);
  EXPECT_EQ(stats.seed, 1U);
  EXPECT_GT(stats.queue_ms, 0);
  EXPECT_GT(stats.prefill_ms, 0);
  EXPECT_GT(stats.decode_ms, 0);
  EXPECT_EQ(fixture.runner->num_steps(), 2 + 9) << "50 rows in two steps, then a step a token";
  fixture.expect_all_blocks_free();
}

TEST(Engine, ManyRequestsGiveWhatEachGivesAlone) {
  Fixture fixture(small_options());
  std::vector<Request> requests;
  std::vector<Stream> streams;
  for (int i = 0; i < 12; ++i) {
    requests.push_back(request_of(prompt_of(1 + static_cast<size_t>(i) * 13, i), 5 + i, 9));
    auto stream = fixture.engine->submit(requests.back());
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(*stream));
  }
  fixture.run_until_idle();
  for (size_t i = 0; i < requests.size(); ++i) {
    expect_same(read(streams[i]), expected(requests[i], 200));
  }
  EXPECT_LE(fixture.runner->most_rows(), 32);
  fixture.expect_all_blocks_free();
}

TEST(Engine, DecodingGoesOnWhileALongPromptIsRead) {
  Fixture fixture(small_options());
  auto first = fixture.engine->submit(request_of({1}, 50, 1));
  fixture.engine->step(false);
  auto second = fixture.engine->submit(request_of(prompt_of(100, 5), 1, 1));
  int64_t num_steps = 0;
  while (fixture.engine->scheduler().num_running() + fixture.engine->scheduler().num_waiting() >
             0 &&
         num_steps < 4) {
    fixture.engine->step(false);
    ++num_steps;
  }
  // 31 rows of the prompt a step beside the first request's one: done in four.
  EXPECT_EQ(fixture.engine->scheduler().num_running(), 1U);
  expect_same(read(*second), expected(request_of(prompt_of(100, 5), 1, 1), 200));
  fixture.run_until_idle();
  expect_same(read(*first), expected(request_of({1}, 50, 1), 200));
}

TEST(Engine, WaitsInOrderWhenTheCacheIsFull) {
  EngineOptions options = small_options();
  options.kv_tokens = 200;
  Fixture fixture(options, {{.block_tokens = 16, .window = 0}});
  std::vector<Stream> streams;
  std::vector<Request> requests;
  for (const int64_t max_tokens : {150, 150, 3}) {
    requests.push_back(request_of({1, 2}, max_tokens, 5));
    requests.back().stop.ignore_eos = true;
    streams.push_back(std::move(*fixture.engine->submit(requests.back())));
  }
  fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->scheduler().num_running(), 1U) << "the short one waits its turn";
  EXPECT_EQ(fixture.engine->scheduler().num_waiting(), 2U);
  fixture.run_until_idle();
  for (size_t i = 0; i < streams.size(); ++i) {
    expect_same(read(streams[i]), expected(requests[i], 200));
  }
}

TEST(Engine, ContextEndIsLength) {
  Fixture fixture(small_options());
  Request request = request_of(prompt_of(190, 1), -1, 3);
  request.stop.ignore_eos = true;
  auto stream = fixture.engine->submit(request);
  fixture.run_until_idle();
  const Outcome got = read(*stream);
  EXPECT_EQ(got.tokens.size(), 10U);
  EXPECT_EQ(got.finish->reason, FinishReason::length);
}

TEST(Engine, NoTokensWantedFinishesAtOnce) {
  Fixture fixture(small_options());
  auto stream = fixture.engine->submit(request_of({1, 2}, 0, 3));
  fixture.run_until_idle();
  const Outcome got = read(*stream);
  EXPECT_TRUE(got.tokens.empty());
  EXPECT_EQ(got.finish->reason, FinishReason::length);
  EXPECT_EQ(fixture.runner->num_steps(), 0);
}

TEST(Engine, StopTokensEndAndAreNotEmitted) {
  Fixture fixture(small_options());
  Request request = request_of({5, 6}, 50, 3);
  request.stop.ignore_eos = true;
  const std::vector<TokenId> all = expected(request, 200).tokens;
  request.stop.stop_token_ids = {all[4]};
  auto stream = fixture.engine->submit(request);
  fixture.run_until_idle();
  const Outcome got = read(*stream);
  EXPECT_EQ(got.finish->reason, FinishReason::stop);
  EXPECT_EQ(got.finish->stop_token, all[4]);
  EXPECT_EQ(got.tokens, std::vector<TokenId>(all.begin(), all.begin() + 4));
}

TEST(Engine, RefusesAtTheDoor) {
  Fixture fixture(small_options());
  const auto error_of = [&](const Request& request) {
    auto result = fixture.engine->submit(request);
    EXPECT_FALSE(result.ok());
    return result.ok() ? Error{} : result.error();
  };
  EXPECT_EQ(error_of(request_of({}, 5, 1)).code, ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(request_of({kVocab}, 5, 1)).code, ErrorCode::out_of_range);
  EXPECT_EQ(error_of(request_of({-1}, 5, 1)).code, ErrorCode::out_of_range);
  Request bad = request_of({1}, 5, 1);
  bad.sampling.top_p = 0;
  EXPECT_EQ(error_of(bad).where, "top_p");
  bad = request_of({1}, 5, 1);
  bad.num_logprobs = -2;
  EXPECT_EQ(error_of(bad).where, "num_logprobs");

  const Error prompt = error_of(request_of(prompt_of(200, 1), -1, 1));
  EXPECT_EQ(prompt.code, ErrorCode::context_length_exceeded);
  EXPECT_NE(prompt.message.find("200 tokens"), std::string::npos);
  const Error both = error_of(request_of(prompt_of(150, 1), 51, 1));
  EXPECT_EQ(both.code, ErrorCode::context_length_exceeded);
  for (const char* number : {"150", "51", "200"}) {
    EXPECT_NE(both.message.find(number), std::string::npos) << both.message;
  }
  EXPECT_TRUE(fixture.engine->submit(request_of(prompt_of(150, 1), 50, 1)).ok());
}

TEST(Engine, CancelFreesTheBlocksWithinAStep) {
  Fixture fixture(small_options());
  for (const int steps_before : {0, 1, 5}) {  // queued, in its prompt, generating
    auto cancelled = fixture.engine->submit(request_of(prompt_of(60, 2), 100, 4));
    const Request other = request_of(prompt_of(20, 9), 30, 4);
    auto kept = fixture.engine->submit(other);
    for (int i = 0; i < steps_before; ++i) fixture.engine->step(false);
    cancelled->cancel();
    fixture.engine->step(false);
    EXPECT_LE(fixture.engine->scheduler().num_running(), 1U);
    EXPECT_EQ(read(*cancelled).finish->reason, FinishReason::cancelled);
    fixture.run_until_idle();
    expect_same(read(*kept), expected(other, 200));
    fixture.expect_all_blocks_free();
  }
}

TEST(Engine, DroppingAStreamCancels) {
  Fixture fixture(small_options());
  {
    auto stream = fixture.engine->submit(request_of(prompt_of(60, 2), 100, 4));
    fixture.engine->step(false);
    EXPECT_EQ(fixture.engine->scheduler().num_running(), 1U);
  }
  fixture.engine->step(false);
  EXPECT_TRUE(fixture.engine->scheduler().is_idle());
  fixture.expect_all_blocks_free();
}

TEST(Engine, AFailedStepEndsItsOwnRequestsOnly) {
  EngineOptions options = small_options();
  options.max_sequences = 1;
  Fixture fixture(options);
  auto failed = fixture.engine->submit(request_of(prompt_of(10, 2), 50, 4));
  const Request other = request_of(prompt_of(10, 3), 5, 4);
  auto waiting = fixture.engine->submit(other);
  fixture.engine->step(false);
  fixture.runner->fail_next_step();
  fixture.run_until_idle();
  const Outcome got = read(*failed);
  ASSERT_TRUE(got.error.has_value());
  EXPECT_EQ(got.error->code, ErrorCode::internal);
  expect_same(read(*waiting), expected(other, 200));
  fixture.expect_all_blocks_free();
}

TEST(Engine, AFreshSeedIsReportedBack) {
  Fixture fixture(small_options());
  Request request = request_of({1, 2, 3}, 4, 0);
  request.sampling.seed.reset();
  auto stream = fixture.engine->submit(request);
  fixture.run_until_idle();
  const Outcome got = read(*stream);
  EXPECT_EQ(got.finish->stats.seed, 41U);
  request.sampling.seed = 41;
  expect_same(got, expected(request, 200));
}

TEST(Engine, ItsEndEndsEveryStream) {
  auto fixture = std::make_optional<Fixture>(small_options());
  auto running = fixture->engine->submit(request_of(prompt_of(10, 2), 50, 4));
  fixture->engine->step(false);
  auto unseen = fixture->engine->submit(request_of(prompt_of(10, 2), 50, 4));
  fixture.reset();
  EXPECT_EQ(read(*running).finish->reason, FinishReason::cancelled);
  EXPECT_EQ(read(*unseen).finish->reason, FinishReason::cancelled);
  running->cancel();  // of an engine that is gone
}

// Requests of random shape come and go, are cancelled and dropped at random, steps fail at random
// for every other seed; every one that is left to end gives what it gives alone, and an error only
// where a step was made to fail.
TEST(Engine, RandomTraces) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    EngineOptions options;
    options.context = 120;
    options.max_sequences = 1 + static_cast<int64_t>(random() % 6);
    options.chunk_tokens = options.max_sequences + static_cast<int64_t>(random() % 40);
    options.kv_tokens = 120 + static_cast<int64_t>(random() % 400);
    Fixture fixture(options);
    std::map<uint64_t, std::pair<Request, Stream>> open;
    uint64_t next = 0;
    int num_ended = 0;
    int num_finished = 0;
    int num_made_to_fail = 0;
    for (int step = 0; step < 600 || !open.empty(); ++step) {
      if (step < 600 && random() % 4 == 0) {
        const size_t num_prompt = 1 + random() % 80;
        Request request = request_of(prompt_of(num_prompt, static_cast<TokenId>(random() % kVocab)),
                                     random() % 8 == 0 ? -1 : random() % 40, random());
        request.stop.ignore_eos = random() % 2 == 0;
        auto stream = fixture.engine->submit(request);
        ASSERT_TRUE(stream.ok());
        open.emplace(next++, std::pair(request, std::move(*stream)));
      }
      if (seed % 2 == 1 && random() % 50 == 0) {
        fixture.runner->fail_next_step();
        ++num_made_to_fail;
      }
      fixture.engine->step(false);
      fixture.engine->scheduler().check_invariants();
      if (step % 10 != 0 && step < 600) continue;
      if (step >= 600) fixture.run_until_idle();
      for (auto it = open.begin(); it != open.end();) {
        if (step < 600 && random() % 3 != 0) {
          ++it;
          continue;
        }
        const bool asks_to_cancel = random() % 2 == 0;
        if (asks_to_cancel) it->second.second.cancel();
        fixture.run_until_idle();
        const Outcome got = read(it->second.second);
        const Outcome want = expected(it->second.first, options.context);
        ++num_ended;
        if (got.error) {
          EXPECT_GT(num_made_to_fail, 0) << got.error->to_string();
        }
        if (got.finish && got.finish->reason != FinishReason::cancelled) {
          ++num_finished;
          expect_same(got, want);
        } else {
          ASSERT_LE(got.tokens.size(), want.tokens.size());
          EXPECT_TRUE(std::equal(got.tokens.begin(), got.tokens.end(), want.tokens.begin()));
        }
        it = open.erase(it);
        if (step < 600) break;
      }
    }
    EXPECT_GT(num_ended, 50);
    EXPECT_GT(num_finished, 10);
    fixture.run_until_idle();
    fixture.expect_all_blocks_free();
  }
}

TEST(EngineThread, ReadersOnOtherThreads) {
  Fixture fixture(small_options());
  fixture.engine->start();
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const Request request =
            request_of(prompt_of(1 + static_cast<size_t>(i) * 7, round), 20, 100);
        auto stream = fixture.engine->submit(request);
        ASSERT_TRUE(stream.ok());
        if ((i + round) % 5 == 0) continue;  // dropped
        expect_same(read(*stream), expected(request, 200));
      }
    });
  }
  for (auto& reader : readers) reader.join();
}

}  // namespace
}  // namespace headrace
