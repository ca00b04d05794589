// Embeddings of tiny models with real weights: against what the weights say, and whatever the
// company.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/engine_impl.h"
#include "tests/tiny_engine.h"

namespace headrace {
namespace {

using tiny::Loaded;
using tiny::some_tokens;

std::unique_ptr<Engine> engine_of(const Loaded& loaded, EngineOptions options) {
  options.kv_type = KvType::f32;
  auto engine = make_engine(*loaded.model, options);
  EXPECT_TRUE(engine.ok()) << engine.error().to_string();
  return std::move(engine).value();
}

Request embed_of(std::vector<TokenId> prompt, Pooling pooling) {
  Request request;
  request.kind = RequestKind::embed;
  request.prompt = std::move(prompt);
  request.pooling = pooling;
  return request;
}

std::vector<float> vector_of(Stream stream) {
  std::vector<float> out;
  while (auto event = stream.next()) {
    if (auto* embedding = std::get_if<EmbeddingEvent>(&*event)) out = std::move(embedding->values);
    if (const auto* error = std::get_if<ErrorEvent>(&*event)) {
      ADD_FAILURE() << error->error.to_string();
    }
  }
  return out;
}

std::vector<float> embed(Engine& engine, const std::vector<TokenId>& prompt, Pooling pooling) {
  auto stream = engine.submit(embed_of(prompt, pooling));
  EXPECT_TRUE(stream.ok());
  return vector_of(std::move(stream).value());
}

// The head multiplies the very vector that is the embedding: their product must be the logits.
TEST(TinyEmbedding, TheHeadMakesTheLogitsOfIt) {
  const test::TinyModel tiny = test::tiny_model({});
  const Loaded loaded(tiny);
  const auto engine = engine_of(loaded, {});
  const auto prompt = some_tokens(20, 1);
  const auto vector = embed(*engine, prompt, Pooling::last);
  ASSERT_EQ(vector.size(), 32U);
  const auto& head = tiny.tensors.at("output.weight").values;
  std::vector<double> logits(50);
  for (size_t id = 0; id < logits.size(); ++id) {
    for (size_t i = 0; i < 32; ++i) {
      logits[id] += static_cast<double>(head[id * 32 + i]) * static_cast<double>(vector[i]);
    }
  }
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  Request request;
  request.prompt = prompt;
  request.num_logprobs = 20;
  request.stop.max_tokens = 1;
  request.stop.ignore_eos = true;
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  const auto event = stream->next();
  const auto& top = std::get<TokenEvent>(*event).top;
  ASSERT_EQ(top.size(), 20U);
  for (const TokenLogprob& one : top) {
    EXPECT_NEAR(one.logprob, logits[static_cast<size_t>(one.id)] - std::log(sum), 1e-3);
  }
}

// The mean over all prefixes' last vectors is the mean of a causal model.
TEST(TinyEmbedding, PoolingsAgreeWithEachOther) {
  const Loaded loaded(test::tiny_model({}));
  const auto engine = engine_of(loaded, {.prefix_cache = false});
  const auto prompt = some_tokens(9, 4);
  std::vector<double> sum(32);
  for (size_t end = 1; end <= prompt.size(); ++end) {
    const auto row =
        embed(*engine, {prompt.begin(), prompt.begin() + static_cast<int64_t>(end)}, Pooling::last);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(row[i]);
    if (end > 1) continue;
    EXPECT_EQ(embed(*engine, prompt, Pooling::cls), row);
  }
  const auto mean = embed(*engine, prompt, Pooling::mean);
  for (size_t i = 0; i < sum.size(); ++i) {
    EXPECT_FLOAT_EQ(mean[i], static_cast<float>(sum[i] / static_cast<double>(prompt.size())));
  }
}

TEST(TinyEmbedding, DependsOnNoCompanyAndNoChunks) {
  for (const bool is_gemma : {false, true}) {
    const Loaded loaded(
        test::tiny_model(is_gemma ? test::tiny_gemma3_options() : test::TinyOptions()));
    for (const Pooling pooling : {Pooling::last, Pooling::mean, Pooling::cls}) {
      std::vector<std::vector<float>> alone;
      {
        const auto engine = engine_of(loaded, {.chunk_tokens = 256, .prefix_cache = false});
        for (size_t i = 0; i < 8; ++i) {
          alone.push_back(embed(*engine, some_tokens(3 + 13 * i, i), pooling));
        }
      }
      const auto engine =
          engine_of(loaded, {.chunk_tokens = 24, .max_sequences = 5, .prefix_cache = true});
      for (int again = 0; again < 2; ++again) {
        std::vector<Stream> streams;
        for (size_t i = 0; i < 8; ++i) {
          auto stream = engine->submit(embed_of(some_tokens(3 + 13 * i, i), pooling));
          ASSERT_TRUE(stream.ok());
          streams.push_back(std::move(stream).value());
          auto other = engine->submit(tiny::request_of(i));
          ASSERT_TRUE(other.ok());
          tiny::read(std::move(other).value());
        }
        for (size_t i = 0; i < 8; ++i) {
          EXPECT_EQ(vector_of(std::move(streams[i])), alone[i])
              << pooling_name(pooling) << ", text " << i << ", gemma " << is_gemma;
        }
      }
    }
  }
}

TEST(TinyEmbedding, NoNumbersAreAnErrorAndNoVector) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 0.0F}) {
    test::TinyModel broken = test::tiny_metadata({});
    for (const auto& [name, tensor] : test::tiny_model({}).tensors) {
      auto values = tensor.values;
      if (name == "output_norm.weight") std::fill(values.begin(), values.end(), value);
      broken.add(name, tensor.shape, values);
    }
    const Loaded loaded(broken);
    const auto engine = engine_of(loaded, {});
    auto stream = engine->submit(embed_of(some_tokens(5, 1), Pooling::mean));
    ASSERT_TRUE(stream.ok());
    const auto event = stream->next();
    ASSERT_TRUE(event && std::holds_alternative<ErrorEvent>(*event));
    const std::string& message = std::get<ErrorEvent>(*event).error.message;
    EXPECT_NE(message.find(value == 0 ? "all zeros" : "no numbers"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace headrace
