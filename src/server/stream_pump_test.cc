#include "server/stream_pump.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/simulation/checksum_engine.h"

namespace headrace::server {
namespace {

using std::chrono::milliseconds;

class Collector final : public EventSink {
 public:
  bool wants_more() const override { return wants_.load(); }
  void take(size_t /*stream*/, std::vector<Event> events) override {
    const std::lock_guard lock(mutex_);
    for (Event& each : events) {
      if (const auto* token = std::get_if<TokenEvent>(&each)) tokens_.push_back(token->id);
    }
  }
  void stream_ended(size_t /*stream*/) noexcept override { has_ended_ = true; }

  void want(bool wants) { wants_ = wants; }
  bool wait_for_end() const {
    for (int i = 0; i < 3000 && !has_ended_; ++i) std::this_thread::sleep_for(milliseconds(10));
    return has_ended_;
  }
  std::vector<TokenId> tokens() const {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }

 private:
  std::atomic<bool> wants_{true};
  std::atomic<bool> has_ended_{false};
  mutable std::mutex mutex_;
  std::vector<TokenId> tokens_;
};

ChecksumEngine make_engine_of(int64_t max_sequences) {
  ChecksumEngineOptions options;
  options.engine.context = 512;
  options.engine.max_sequences = max_sequences;
  auto made = make_checksum_engine(options);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

std::shared_ptr<Stream> submit(Engine& engine, TokenId first, int64_t num_tokens) {
  Request request;
  request.prompt = {first, 7, 9};
  request.sampling.temperature = 0;
  request.sampling.seed = 5;
  request.stop.max_tokens = num_tokens;
  auto stream = engine.submit(std::move(request));
  EXPECT_TRUE(stream.ok());
  return std::make_shared<Stream>(std::move(stream).value());
}

TEST(StreamPump, GivesEachSinkItsOwn) {
  auto made = make_engine_of(4);
  StreamPump pump(*made.engine);
  std::vector<std::shared_ptr<Collector>> sinks;
  for (TokenId i = 0; i < 20; ++i) {
    sinks.push_back(std::make_shared<Collector>());
    pump.add(submit(*made.engine, i + 1, 40), sinks.back(), 0);
  }
  for (TokenId i = 0; i < 20; ++i) {
    ASSERT_TRUE(sinks[static_cast<size_t>(i)]->wait_for_end());
    EXPECT_EQ(sinks[static_cast<size_t>(i)]->tokens(),
              expected_tokens(std::vector<TokenId>{i + 1, 7, 9}, 5, 40, 1000));
  }
}

TEST(StreamPump, LeavesUnreadWhatNobodyWants) {
  auto made = make_engine_of(2);
  StreamPump pump(*made.engine);
  const auto slow = std::make_shared<Collector>();
  slow->want(false);
  pump.add(submit(*made.engine, 3, 30), slow, 0);
  const auto quick = std::make_shared<Collector>();
  pump.add(submit(*made.engine, 4, 30), quick, 0);
  ASSERT_TRUE(quick->wait_for_end());
  EXPECT_TRUE(slow->tokens().empty());
  slow->want(true);
  ASSERT_TRUE(slow->wait_for_end());
  EXPECT_EQ(slow->tokens().size(), 30U);
}

TEST(StreamPump, EndTellsEverySink) {
  auto made = make_engine_of(1);
  StreamPump pump(*made.engine);
  const auto running = std::make_shared<Collector>();
  running->want(false);
  pump.add(submit(*made.engine, 3, 300), running, 0);
  pump.end();
  EXPECT_TRUE(running->wait_for_end());
  const auto late = std::make_shared<Collector>();
  pump.add(submit(*made.engine, 3, 300), late, 0);
  EXPECT_TRUE(late->wait_for_end());
}

}  // namespace
}  // namespace headrace::server
