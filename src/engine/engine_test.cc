// Scheduler, block tables and engine together, on the checksum model: no files, no threads but
// where a test says so, virtual time.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/test_engine.h"

namespace headrace {
namespace {

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
  for (const size_t num_prompt : {150, 100, 3}) {
    requests.push_back(request_of(prompt_of(num_prompt, static_cast<TokenId>(num_prompt)), 5, 5));
    streams.push_back(fixture.submit(requests.back()));
  }
  for (int i = 0; i < 6; ++i) fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 1U) << "the short one waits its turn";
  EXPECT_EQ(fixture.scheduler().num_waiting(), 2U);
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

TEST(Engine, APromptThatFillsTheContextCanBeScored) {
  Fixture fixture(small_options());
  Request request = request_of(prompt_of(200, 1), 0, 5);
  request.num_prompt_logprobs = 0;
  auto stream = fixture.submit(request);
  fixture.run_until_idle();
  size_t num_scores = 0;
  while (const auto event = stream.next()) {
    if (const auto* scores = std::get_if<PromptLogprobsEvent>(&*event)) {
      num_scores += scores->tokens.size();
    }
  }
  EXPECT_EQ(num_scores, 199U);
  request.prompt.push_back(3);
  EXPECT_FALSE(fixture.engine->submit(request).ok());
}

// The token that ends a request is not one of its tokens, and takes no part in its pace.
TEST(Engine, TimesAreThoseOfTokensThatWereTold) {
  Fixture fixture(small_options());
  Request request = request_of(prompt_of(10, 1), 30, 5);
  request.stop.ignore_eos = true;
  const Outcome plain = expected(request, 200);
  size_t at = 5;  // of a token that was not said before
  while (std::count(plain.tokens.begin(), plain.tokens.begin() + at, plain.tokens[at]) > 0) ++at;
  request.stop.stop_token_ids = {plain.tokens[at]};
  auto stream = fixture.submit(request);
  while (!fixture.scheduler().is_idle() || fixture.engine->stats().num_steps == 0) {
    fixture.engine->step(false);
    fixture.clock->advance_ms(10);
  }
  const Outcome got = read(stream);
  ASSERT_EQ(got.tokens.size(), at);
  EXPECT_NEAR(got.finish->stats.decode_ms, 10.0 * static_cast<double>(at - 1), 1);
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
  EngineOptions options = small_options();
  options.prefix_cache = false;
  Fixture fixture(options);
  int64_t num_cancelled = 0;
  for (const int steps_before : {0, 1, 5}) {  // queued, in its prompt, generating
    auto cancelled = fixture.engine->submit(request_of(prompt_of(60, 2), 100, 4));
    const Request other = request_of(prompt_of(20, 9), 30, 4);
    auto kept = fixture.engine->submit(other);
    for (int i = 0; i < steps_before; ++i) fixture.engine->step(false);
    cancelled->cancel();
    fixture.engine->step(false);
    EXPECT_LE(fixture.engine->scheduler().num_running(), 1U);
    EXPECT_EQ(fixture.engine->stats().num_cancelled, ++num_cancelled);
    // Only the other one's blocks are held: those of 20 tokens and of what it has said.
    const BlockPool& pool = fixture.scheduler().cache().groups().front().pool();
    EXPECT_LE(pool.num_blocks() - pool.num_unreferenced(), 2);
    EXPECT_EQ(read(*cancelled).finish->reason, FinishReason::cancelled);
    fixture.run_until_idle();
    expect_same(read(*kept), expected(other, 200));
    fixture.expect_all_blocks_free();
  }
}

// As when a client goes while its long prompt is computed.
TEST(Engine, AStepThatNobodyWantsIsGivenUp) {
  Fixture fixture(small_options());
  const Request request = request_of(prompt_of(60, 2), 100, 4);
  Stream first = fixture.submit(request);
  Stream second = fixture.submit(request_of(prompt_of(20, 9), 100, 4));
  fixture.engine->step(false);
  fixture.runner->on_step([&](int64_t) { first.cancel(); });
  fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->stats().num_steps, 2) << "the second one wants it";
  fixture.runner->on_step([&](int64_t) { second.cancel(); });
  fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->stats().num_steps, 2);
  EXPECT_EQ(fixture.engine->stats().num_failed_steps, 0);
  fixture.engine->step(false);
  EXPECT_TRUE(fixture.scheduler().is_idle());
  EXPECT_EQ(read(first).finish->reason, FinishReason::cancelled);
  EXPECT_EQ(read(second).finish->reason, FinishReason::cancelled);
  fixture.expect_all_blocks_free();
  fixture.runner->on_step({});
  Stream again = fixture.submit(request);
  fixture.run_until_idle();
  expect_same(read(again), expected(request, 200));
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

TEST(Engine, AStepThatFailsOnceIsRepeated) {
  Fixture fixture(small_options());
  std::vector<Request> requests;
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 3; ++i) {
    requests.push_back(request_of(prompt_of(10, i), 20, 4));
    streams.push_back(fixture.submit(requests.back()));
  }
  for (int i = 0; i < 5; ++i) fixture.engine->step(false);
  fixture.runner->fail_next_step();
  fixture.run_until_idle();
  for (size_t i = 0; i < streams.size(); ++i) {
    expect_same(read(streams[i]), expected(requests[i], 200));
  }
  EXPECT_EQ(fixture.engine->stats().num_failed_steps, 1);
  fixture.expect_all_blocks_free();
}

TEST(Engine, ARequestThatNoStepCanServeFailsAlone) {
  Fixture fixture(small_options());
  fixture.runner->fail_on(999);
  std::vector<Request> requests;
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 3; ++i) {
    requests.push_back(request_of(prompt_of(10, i), 20, 4));
    if (i == 1) requests.back().prompt.back() = 999;
    streams.push_back(fixture.submit(requests.back()));
  }
  fixture.run_until_idle();
  expect_same(read(streams[0]), expected(requests[0], 200));
  expect_same(read(streams[2]), expected(requests[2], 200));
  const Outcome bad = read(streams[1]);
  ASSERT_TRUE(bad.error.has_value());
  EXPECT_EQ(bad.error->code, ErrorCode::internal);
  fixture.expect_all_blocks_free();
}

TEST(Engine, LogitsThatAreNoNumbersFailTheirRequestAlone) {
  Fixture fixture(small_options());
  fixture.runner->spoil_logits_of(999);
  const Request good = request_of(prompt_of(10, 1), 20, 4);
  auto good_stream = fixture.submit(good);
  auto bad_stream = fixture.submit(request_of({1, 2, 999}, 20, 4));
  fixture.run_until_idle();
  expect_same(read(good_stream), expected(good, 200));
  ASSERT_TRUE(read(bad_stream).error.has_value());
  EXPECT_EQ(fixture.engine->stats().num_errors, 1);
  EXPECT_EQ(fixture.engine->stats().num_bad_logits, 1);
  EXPECT_EQ(fixture.engine->stats().num_failed_steps, 0);
}

TEST(Engine, AFreshSeedIsReportedBack) {
  Fixture fixture(small_options());
  Request request = request_of({1, 2, 3}, 4, 0);
  request.sampling.seed.reset();
  auto stream = fixture.engine->submit(request);
  fixture.run_until_idle();
  const Outcome got = read(*stream);
  EXPECT_GT(got.finish->stats.seed, 40U);
  request.sampling.seed = got.finish->stats.seed;
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

TEST(EngineThread, OneThreadReadsManyStreams) {
  Fixture fixture(small_options());
  Engine& engine = *fixture.engine;
  using namespace std::chrono_literals;
  uint64_t seen = engine.wait_for_news(0, 0ms);
  EXPECT_EQ(engine.wait_for_news(seen, 1ms), seen) << "nothing happens";
  fixture.engine->start();
  std::vector<Request> requests;
  std::vector<Stream> streams;
  for (int i = 0; i < 10; ++i) {
    requests.push_back(request_of(prompt_of(20, i), 30 + i, 9));
    streams.push_back(fixture.submit(requests.back()));
  }
  std::vector<std::vector<TokenId>> got(streams.size());
  size_t num_ended = 0;
  while (num_ended < streams.size()) {
    const uint64_t now = engine.wait_for_news(seen, std::chrono::hours(1000));
    ASSERT_NE(now, seen) << "an event was missed: the engine has nothing left to do";
    seen = now;
    for (size_t i = 0; i < streams.size(); ++i) {
      while (streams[i].wait_for(0ms)) {
        const auto event = streams[i].next();
        if (!event) break;
        if (const auto* token = std::get_if<TokenEvent>(&*event)) got[i].push_back(token->id);
        num_ended += std::holds_alternative<FinishEvent>(*event) ? 1 : 0;
      }
    }
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(got[i], expected(requests[i], 200).tokens);
  }
}

TEST(EngineThread, AWaitWithoutEnd) {
  Fixture fixture(small_options());
  Stream stream = fixture.submit(request_of({1, 2, 3}, 4, 1));
  std::atomic<bool> has_news = false;
  std::atomic<bool> is_over = false;
  std::thread reader([&] {
    has_news = stream.wait_for(std::chrono::milliseconds::max());
    is_over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_over) << "there was nothing to tell";
  fixture.run_until_idle();
  reader.join();
  EXPECT_TRUE(has_news);
}

}  // namespace
}  // namespace headrace
