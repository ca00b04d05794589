// The checksum engine that others serve: right tokens, and the faults that it was asked for.
#include "engine/simulation/checksum_engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

namespace headrace {
namespace {

using namespace std::chrono_literals;

constexpr TokenId kThrows = 990;
constexpr TokenId kSpoils = 991;
constexpr TokenId kHangs = 992;

ChecksumEngineOptions faulty_options() {
  ChecksumEngineOptions options;
  options.engine.context = 300;
  options.engine.max_sequences = 4;
  options.throwing_token = kThrows;
  options.spoiled_token = kSpoils;
  options.hanging_token = kHangs;
  return options;
}

Request counting_request(TokenId first, size_t num_prompt = 20) {
  Request request;
  request.prompt.resize(num_prompt);
  std::iota(request.prompt.begin(), request.prompt.end(), first);
  request.stop.max_tokens = 40;
  request.sampling.seed = 5;
  return request;
}

struct Told {
  std::vector<TokenId> tokens;
  std::optional<FinishReason> reason;
  std::optional<Error> error;
};

Told read_told(Stream& stream) {
  Told told;
  while (const auto event = stream.next()) {
    if (const auto* token = std::get_if<TokenEvent>(&*event)) told.tokens.push_back(token->id);
    if (const auto* finish = std::get_if<FinishEvent>(&*event)) told.reason = finish->reason;
    if (const auto* error = std::get_if<ErrorEvent>(&*event)) told.error = error->error;
  }
  return told;
}

void expect_right(Stream& stream, const Request& request) {
  const Told told = read_told(stream);
  EXPECT_EQ(told.reason, FinishReason::length);
  EXPECT_EQ(told.tokens, expected_tokens(request.prompt, 5, 40, 1000));
}

TEST(ChecksumEngine, SaysWhatIsExpected) {
  ChecksumEngineOptions options = faulty_options();
  options.window = 24;
  options.engine.kv_tokens = 320;  // so that some wait
  const auto made = make_checksum_engine(options);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  std::vector<Request> requests;
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 20; ++i) {
    requests.push_back(counting_request(37 * i, 10 + static_cast<size_t>(i) * 7));
    streams.push_back(std::move(made->engine->submit(requests.back()).value()));
  }
  for (size_t i = 0; i < streams.size(); ++i) expect_right(streams[i], requests[i]);
}

TEST(ChecksumEngine, EndsAtEndTokens) {
  ChecksumEngineOptions options = faulty_options();
  options.vocab_size = 20;
  options.end_tokens = {3, 4};
  options.throwing_token = options.spoiled_token = options.hanging_token = -1;
  const auto made = make_checksum_engine(options);
  ASSERT_TRUE(made.ok());
  Request request = counting_request(0, 10);
  Stream stream = std::move(made->engine->submit(request).value());
  const Told told = read_told(stream);
  EXPECT_EQ(told.reason, FinishReason::stop);
  EXPECT_LT(told.tokens.size(), 40U);
  EXPECT_EQ(told.tokens, expected_tokens(request.prompt, 5, 40, 20, options.end_tokens));
}

TEST(ChecksumEngine, ARequestThatThrowsOrIsSpoiledFailsAlone) {
  const auto made = make_checksum_engine(faulty_options());
  Engine& engine = *made->engine;
  const Request good = counting_request(100);
  Request throwing = counting_request(200);
  throwing.prompt[7] = kThrows;
  Request spoiled = counting_request(300);
  spoiled.prompt[3] = kSpoils;
  Stream first = std::move(engine.submit(throwing).value());
  Stream second = std::move(engine.submit(spoiled).value());
  Stream third = std::move(engine.submit(good).value());
  const Told thrown = read_told(first);
  ASSERT_TRUE(thrown.error);
  EXPECT_EQ(thrown.error->code, ErrorCode::internal);
  EXPECT_TRUE(thrown.tokens.empty());
  const Told no_number = read_told(second);
  ASSERT_TRUE(no_number.error);
  EXPECT_TRUE(no_number.tokens.empty());
  expect_right(third, good);
}

TEST(ChecksumEngine, AStepFailsOnDemand) {
  const auto made = make_checksum_engine(faulty_options());
  made->faults->fail_next_step();
  const Request request = counting_request(1);
  Stream stream = std::move(made->engine->submit(request).value());
  expect_right(stream, request);
  EXPECT_EQ(made->engine->stats().num_failed_steps, 1);
}

TEST(ChecksumEngine, AStepHangsUntilItIsReleased) {
  const auto made = make_checksum_engine(faulty_options());
  Engine& engine = *made->engine;
  EXPECT_FALSE(made->faults->wait_for_hang(0ms));
  Request request = counting_request(1);
  request.prompt[5] = kHangs;
  Stream stream = std::move(engine.submit(request).value());
  ASSERT_TRUE(made->faults->wait_for_hang(60s));
  while (engine.stalled_for() < 20ms) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(stream.wait_for(0ms));
  made->faults->release();
  expect_right(stream, request);
  EXPECT_FALSE(made->faults->wait_for_hang(0ms)) << "once, not at each of its tokens";
  made->faults->hang_next_step();
  Stream again = std::move(engine.submit(counting_request(1)).value());
  ASSERT_TRUE(made->faults->wait_for_hang(60s));
  made->faults->release();
  expect_right(again, counting_request(1));
}

TEST(ChecksumEngine, AHangEndsByItself) {
  ChecksumEngineOptions options = faulty_options();
  options.longest_hang = 10ms;
  const auto made = make_checksum_engine(options);
  made->faults->hang_next_step();
  Stream stream = std::move(made->engine->submit(counting_request(1)).value());
  expect_right(stream, counting_request(1));
}

TEST(ChecksumEngine, StepsTakeTheirTime) {
  ChecksumEngineOptions options = faulty_options();
  options.step_delay = 2ms;
  const auto made = make_checksum_engine(options);
  Stream stream = std::move(made->engine->submit(counting_request(1)).value());
  expect_right(stream, counting_request(1));
  EXPECT_GE(made->engine->stats().step_seconds.sum, 38 * 0.002) << "the last may come late";
}

TEST(ChecksumEngine, ChecksItsOptions) {
  ChecksumEngineOptions options = faulty_options();
  options.engine.max_sequences = 129;
  const auto too_many = make_checksum_engine(options);
  ASSERT_FALSE(too_many.ok());
  EXPECT_EQ(too_many.error().where, "max_sequences");
  options = faulty_options();
  options.engine.context = 0;
  EXPECT_FALSE(make_checksum_engine(options).ok());
}

}  // namespace
}  // namespace headrace
