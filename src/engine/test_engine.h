// What tests of the engine on the checksum model share: an engine on virtual time, requests, and
// what they must give.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine_impl.h"
#include "engine/simulation/checksum_runner.h"

namespace headrace {

inline constexpr int64_t kVocab = 1000;
inline constexpr TokenId kEnd = 7;

/// Moves on by a microsecond at each look, and when told to. Thread-safe, as every Clock.
class StepClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_ += 1000; }
  int64_t unix_seconds() const override { return 0; }
  void advance_ms(int64_t ms) { now_ns_ += ms * 1'000'000; }

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
                                                            {.block_tokens = 16, .window = 20}},
                   std::shared_ptr<const Clock> other_clock = nullptr, bool is_encoder = false) {
    const auto num_blocks = engine_blocks(options, geometries);
    ModelInfo info;
    info.name = "checksum";
    info.vocab_size = kVocab;
    info.end_tokens = {kEnd};
    info.is_encoder = is_encoder;
    if (is_encoder) info.pooling = Pooling::mean;
    auto made = std::make_unique<ChecksumRunner>(info, geometries, num_blocks);
    runner = made.get();
    EngineParts parts;
    parts.runner = std::move(made);
    clock = std::make_shared<StepClock>();
    parts.clock = other_clock ? std::move(other_clock) : clock;
    parts.random = std::make_shared<CountingRandom>();
    const std::vector<uint64_t> block_bytes(geometries.size(), 100);
    engine = std::make_unique<EngineImpl>(std::move(parts), options, geometries, num_blocks,
                                          block_bytes);
  }

  void run_until_idle() {
    do {
      engine->step(false);
      engine->scheduler().check_invariants();
    } while (!engine->scheduler().is_idle());
  }

  void expect_all_blocks_free() const {
    for (const CacheGroup& group : engine->scheduler().cache().groups()) {
      EXPECT_EQ(group.pool().num_unreferenced(), group.pool().num_blocks());
    }
  }

  const Scheduler& scheduler() const { return engine->scheduler(); }
  Stream submit(const Request& request) {
    auto stream = engine->submit(request);
    EXPECT_TRUE(stream.ok()) << stream.error().to_string();
    return std::move(stream).value();
  }

  ChecksumRunner* runner = nullptr;
  std::shared_ptr<StepClock> clock;
  std::unique_ptr<EngineImpl> engine;
};

inline EngineOptions small_options() {
  EngineOptions options;
  options.context = 200;
  options.chunk_tokens = 32;
  options.max_sequences = 4;
  options.kv_tokens = 4 * 200;
  return options;
}

inline Request request_of(std::vector<TokenId> prompt, int64_t max_tokens, uint64_t seed) {
  Request request;
  request.prompt = std::move(prompt);
  request.stop.max_tokens = max_tokens;
  request.sampling.seed = seed;
  return request;
}

inline std::vector<TokenId> prompt_of(size_t size, TokenId first) {
  std::vector<TokenId> prompt(size);
  for (size_t i = 0; i < size; ++i) {
    prompt[i] = static_cast<TokenId>((static_cast<size_t>(first) + 31 * i) % kVocab);
  }
  return prompt;
}

/// What became of one choice.
struct Outcome {
  std::vector<TokenId> tokens;
  std::optional<FinishEvent> finish;
  std::optional<Error> error;
};

/// Reads a stream of several choices to its end.
inline std::vector<Outcome> read_choices(Stream& stream, size_t num_choices) {
  std::vector<Outcome> out(num_choices);
  bool has_failed = false;
  while (auto event = stream.next()) {
    EXPECT_FALSE(has_failed) << "an event after the last";
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      Outcome& choice = out.at(static_cast<size_t>(token->choice));
      EXPECT_FALSE(choice.finish) << "a token after the end";
      choice.tokens.push_back(token->id);
    } else if (const auto* finish = std::get_if<FinishEvent>(&*event)) {
      out.at(static_cast<size_t>(finish->choice)).finish = *finish;
    } else if (const auto* error = std::get_if<ErrorEvent>(&*event)) {
      has_failed = true;
      for (Outcome& choice : out) choice.error = error->error;
    }
  }
  for (const Outcome& choice : out) EXPECT_TRUE(choice.finish || choice.error);
  return out;
}

/// The same of one choice.
inline Outcome read(Stream& stream) {
  return read_choices(stream, 1).front();
}

/// What the request must give, by the checksum model's own rule.
inline Outcome expected(const Request& request, int64_t context, int32_t choice = 0) {
  Outcome out;
  std::vector<TokenId> tokens = request.prompt;
  int64_t left = context - static_cast<int64_t>(tokens.size());
  if (request.stop.max_tokens >= 0) left = std::min(left, request.stop.max_tokens);
  FinishEvent finish;
  finish.reason = FinishReason::length;
  for (; left > 0; --left) {
    const TokenId id = checksum_next(tokens, *request.sampling.seed, kVocab, choice);
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

inline void expect_same(const Outcome& got, const Outcome& want) {
  ASSERT_TRUE(got.finish.has_value()) << (got.error ? got.error->to_string() : "");
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.finish->reason, want.finish->reason);
  EXPECT_EQ(got.finish->stop_token, want.finish->stop_token);
}

}  // namespace headrace
