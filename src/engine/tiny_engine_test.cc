// Session and engine on tiny real models: errors, reset, window reclaim, and the same answer alone
// and in company.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "engine/backend_runner.h"
#include "engine/engine_impl.h"
#include "engine/kv_memory.h"
#include "engine/session/session.h"
#include "tests/tiny_engine.h"

namespace headrace {
namespace {

using namespace tiny;

std::vector<float> feed_all(Session& session, std::span<const TokenId> tokens) {
  std::vector<float> out;
  int64_t expected = session.num_tokens();
  const auto fed =
      session.feed(tokens, LogitsFor::all, [&](int64_t position, std::span<const float> logits) {
        EXPECT_EQ(position, expected++);
        out.insert(out.end(), logits.begin(), logits.end());
      });
  EXPECT_TRUE(fed.ok());
  return out;
}

TEST(Session, WantedRowsOnly) {
  const Loaded loaded = tiny_gemma3();
  const auto session = make_session(*loaded.model, {.max_tokens = 100, .chunk_tokens = 16});
  const auto tokens = some_tokens(40, 0);
  std::vector<int64_t> positions;
  const auto note = [&](int64_t position, std::span<const float> logits) {
    positions.push_back(position);
    EXPECT_EQ(logits.size(), 50U);
  };
  ASSERT_TRUE(session->feed(tokens, LogitsFor::none, note).ok());
  EXPECT_TRUE(positions.empty());
  ASSERT_TRUE(session->feed(tokens, LogitsFor::last, note).ok());
  EXPECT_EQ(positions, std::vector<int64_t>{79});
  EXPECT_EQ(session->num_tokens(), 80);
}

TEST(Session, ResetForgetsAndChunksDoNotMatter) {
  const Loaded loaded = tiny_gemma3();
  const auto tokens = some_tokens(90, 1);
  const auto session = make_session(*loaded.model, {.max_tokens = 90, .chunk_tokens = 64});
  const auto first = feed_all(*session, tokens);
  session->reset();
  EXPECT_EQ(session->num_tokens(), 0);
  EXPECT_EQ(feed_all(*session, tokens), first);
  // One by one, so that the window slides within the blocks of a tight pool.
  const auto other = make_session(*loaded.model, {.max_tokens = 90, .chunk_tokens = 1});
  EXPECT_EQ(feed_all(*other, tokens), first);
}

TEST(Session, RefusesTooManyAndForeignTokens) {
  const Loaded loaded = tiny_gemma3();
  const auto session = make_session(*loaded.model, {.max_tokens = 20});
  const auto ignore = [](int64_t, std::span<const float>) {};
  const auto full = session->feed(some_tokens(21, 0), LogitsFor::last, ignore);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::context_length_exceeded);
  for (const TokenId id : {50, -1}) {
    const auto foreign = session->feed(std::span(&id, 1), LogitsFor::last, ignore);
    ASSERT_FALSE(foreign.ok());
    EXPECT_EQ(foreign.error().code, ErrorCode::out_of_range);
  }
  EXPECT_EQ(session->num_tokens(), 0);
}

TEST(KvMemory, PagesHaveTheirExactSize) {
  const Loaded loaded = tiny_gemma3();
  // One head of 16: 16 tokens * 16 * (key + value) * 2 bytes; 6 window layers and one other.
  EXPECT_EQ(block_bytes(*loaded.model, KvType::f16, 16), (std::vector<uint64_t>{6 * 1024, 1024}));
  const auto geometries = cache_geometries(*loaded.model, 16);
  ASSERT_EQ(geometries.size(), 2U);
  EXPECT_EQ(geometries[0].window, 20);
  EXPECT_EQ(geometries[1].window, 0);
}

// The same request alone and among others.
TEST(TinyEngine, AnswersDoNotDependOnCompany) {
  for (const bool is_gemma : {false, true}) {
    const Loaded loaded(
        test::tiny_model(is_gemma ? test::tiny_gemma3_options() : test::TinyOptions()));
    constexpr size_t kRequests = 16;
    std::vector<Answer> alone;
    {
      auto engine = make_engine(*loaded.model, {});
      ASSERT_TRUE(engine.ok()) << engine.error().to_string();
      for (size_t i = 0; i < kRequests; ++i) {
        alone.push_back(read(std::move(*(*engine)->submit(request_of(i)))));
      }
    }
    for (const int64_t chunk_tokens : {8, 50}) {
      EngineOptions options;
      options.max_sequences = 8;
      options.chunk_tokens = chunk_tokens;
      options.kv_tokens = 400;  // so that some wait
      auto engine = make_engine(*loaded.model, options);
      ASSERT_TRUE(engine.ok()) << engine.error().to_string();
      std::vector<Stream> streams;
      for (size_t i = 0; i < kRequests; ++i) {
        streams.push_back(std::move(*(*engine)->submit(request_of(i))));
      }
      for (size_t i = 0; i < kRequests; ++i) {
        EXPECT_EQ(read(std::move(streams[i])), alone[i]) << "request " << i;
      }
    }
  }
}

/// Real time, and how often it was looked at.
class CountedClock final : public Clock {
 public:
  int64_t now_ns() const override {
    ++num_looks;
    return clock_.now_ns();
  }
  int64_t unix_seconds() const override { return clock_.unix_seconds(); }
  mutable std::atomic<int64_t> num_looks = 0;

 private:
  SystemClock clock_;
};

// The time stamp that tells a long step from a stuck one.
TEST(TinyEngine, EveryLayerBeats) {
  const Loaded loaded = tiny_gemma3();
  const CountedClock clock;
  const auto geometries = cache_geometries(*loaded.model, 16);
  EngineOptions options;
  options.context = 64;
  options.kv_tokens = 64;
  const auto num_blocks = engine_blocks(options, geometries);
  EngineParts parts;
  auto made =
      std::make_unique<BackendRunner>(*loaded.model, BackendRunnerOptions(), num_blocks, clock);
  const BackendRunner& runner = *made;
  parts.runner = std::move(made);
  parts.clock = std::make_shared<SystemClock>();
  parts.random = std::make_shared<SystemRandom>();
  EngineImpl engine(std::move(parts), options, geometries, num_blocks);
  Request request;
  request.prompt = {1, 2, 3};
  request.stop.max_tokens = 1;
  Stream stream = std::move(engine.submit(request).value());
  engine.step(false);
  constexpr int64_t kLooksOfSampling = 5;
  EXPECT_EQ(clock.num_looks, loaded.model->info().num_layers + kLooksOfSampling);
  EXPECT_EQ(runner.heartbeat().silent_ns(clock.now_ns()), 0) << "the step is over";
}

// A weight that is no number: every request fails clearly and the engine lives.
class TinyEngineWith : public testing::TestWithParam<float> {};

TEST_P(TinyEngineWith, ABadWeightFailsTheRequest) {
  test::TinyModel tiny = test::tiny_metadata({});
  test::add_tiny_tensors(tiny);
  test::TinyModel broken = test::tiny_metadata({});
  for (const auto& [name, tensor] : tiny.tensors) {
    auto values = tensor.values;
    if (name == "output_norm.weight") values[0] = GetParam();
    broken.add(name, tensor.shape, values);
  }
  const Loaded loaded(broken);
  auto engine = make_engine(*loaded.model, {});
  ASSERT_TRUE(engine.ok());
  for (const float temperature : {0.0F, 0.8F}) {
    Request request;
    request.prompt = {1, 2, 3};
    request.sampling.temperature = temperature;
    auto stream = (*engine)->submit(request);
    ASSERT_TRUE(stream.ok());
    const auto event = stream->next();
    ASSERT_TRUE(event && std::holds_alternative<ErrorEvent>(*event));
    const std::string& message = std::get<ErrorEvent>(*event).error.message;
    EXPECT_TRUE(message.find("NaN") != std::string::npos ||
                message.find("Inf") != std::string::npos)
        << message;
    EXPECT_FALSE(stream->next().has_value());
  }
  uint64_t seen = 0;
  while ((*engine)->stats().num_bad_logits < 2) {  // counted once the step is over
    seen = (*engine)->wait_for_news(seen, std::chrono::seconds(10));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TinyEngineWith,
                         testing::Values(NAN, std::numeric_limits<float>::infinity(),
                                         -std::numeric_limits<float>::infinity()));

TEST(MakeEngine, ChecksItsOptions) {
  const Loaded loaded = tiny_gemma3();
  const auto error_of = [&](EngineOptions options) {
    auto engine = make_engine(*loaded.model, options);
    return engine.ok() ? std::string() : engine.error().where;
  };
  EXPECT_EQ(error_of({.context = -1}), "context");
  EXPECT_EQ(error_of({.block_tokens = 8}), "block_tokens");
  EXPECT_EQ(error_of({.block_tokens = 24}), "block_tokens");
  EXPECT_EQ(error_of({.chunk_tokens = 0}), "chunk_tokens");
  EXPECT_EQ(error_of({.max_sequences = 0}), "max_sequences");
  EXPECT_EQ(error_of({.context = 100, .kv_tokens = 31}), "kv_tokens");
  EXPECT_EQ(error_of({.context = 100, .kv_bytes = 100}), "kv_bytes");
  EXPECT_EQ(error_of({.context = 16}), "") << "less than the smallest cache";
  // What is refused says what is enough, also for many sequences.
  const auto bytes = block_bytes(*loaded.model, KvType::f16, 16);
  const uint64_t least = 2 * std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  EXPECT_EQ(error_of({.context = 100, .max_sequences = 64, .kv_bytes = least - 1}), "kv_bytes");
  EXPECT_EQ(error_of({.context = 100, .max_sequences = 64, .kv_bytes = least}), "");
  EXPECT_EQ(error_of({.max_slowdown = 1}), "max_slowdown");
  auto engine = make_engine(*loaded.model, {});
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ((*engine)->max_context(), 256);
}

}  // namespace
}  // namespace headrace
