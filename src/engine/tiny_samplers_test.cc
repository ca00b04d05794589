// Samplers that look at the history or have a state of their own, on tiny real models: a sequence's
// tokens are the same alone, in company, and where it was preempted and computed again.
#include <gtest/gtest.h>

#include <memory>

#include "engine/engine_options.h"
#include "tests/tiny_engine.h"

namespace headrace {
namespace {

using namespace tiny;

Request sampler_request(size_t i) {
  Request request;
  request.prompt = some_tokens(10 + i % 5, i);
  request.sampling.temperature = 1.5F;
  request.sampling.seed = 100 + i;
  request.stop.max_tokens = 70;
  request.stop.ignore_eos = true;
  SamplingParams& sampling = request.sampling;
  if (i % 4 == 0) sampling.mirostat = 1;
  if (i % 4 == 1) sampling.mirostat = 2;
  sampling.mirostat_tau = 3;
  sampling.mirostat_eta = 0.7F;
  if (i % 4 == 2) {
    sampling.xtc_probability = 0.5F;
    sampling.xtc_threshold = 0.02F;
    sampling.top_k = i % 8 == 2 ? 0 : 30;
  }
  if (i % 4 == 3) {
    sampling.dry_multiplier = 2;
    sampling.dry_allowed_length = 1;
    sampling.dry_breakers =
        std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{3, 9});
    sampling.temperature = i % 8 == 3 ? 0.0F : 0.5F;
  }
  return request;
}

TEST(TinySamplers, PreemptionChangesNoToken) {
  constexpr size_t kRequests = 16;
  const Loaded loaded = tiny_gemma3();
  std::vector<Answer> alone;
  std::vector<Answer> plain;  // without the samplers
  {
    auto engine = make_engine(*loaded.model, {});
    ASSERT_TRUE(engine.ok()) << engine.error().to_string();
    for (size_t i = 0; i < kRequests; ++i) {
      Request request = sampler_request(i);
      alone.push_back(read(std::move(*(*engine)->submit(request))));
      request.sampling.mirostat = 0;
      request.sampling.xtc_probability = 0;
      request.sampling.dry_multiplier = 0;
      plain.push_back(read(std::move(*(*engine)->submit(request))));
    }
  }
  for (size_t i = 0; i < kRequests; ++i) {
    EXPECT_EQ(alone[i].ids.size(), 70U);
    EXPECT_FALSE(alone[i] == plain[i]) << "request " << i << ": its sampler does something";
  }
  EngineOptions options;
  options.max_sequences = 8;
  options.kv_tokens = 256;  // of which eight want 640
  options.context = 128;
  auto engine = make_engine(*loaded.model, options);
  ASSERT_TRUE(engine.ok()) << engine.error().to_string();
  std::vector<Stream> streams;
  for (size_t i = 0; i < kRequests; ++i) {
    streams.push_back(std::move(*(*engine)->submit(sampler_request(i))));
  }
  std::vector<int64_t> num_preemptions(4);  // of each kind of request
  for (size_t i = 0; i < kRequests; ++i) {
    const Answer answer = read(std::move(streams[i]));
    EXPECT_EQ(answer, alone[i]) << "request " << i;
    num_preemptions[i % 4] += answer.num_preemptions;
  }
  for (const int64_t count : num_preemptions) EXPECT_GT(count, 0);
}

TEST(TinySamplers, ChoicesOfOneRequestHaveTheirOwnState) {
  const Loaded loaded = tiny_gemma3();
  auto engine = make_engine(*loaded.model, {.max_sequences = 4});
  ASSERT_TRUE(engine.ok()) << engine.error().to_string();
  const auto ids_of = [&](int32_t num_choices) {
    Request request = sampler_request(1);
    request.num_choices = num_choices;
    std::vector<std::vector<TokenId>> out(static_cast<size_t>(num_choices));
    Stream stream = std::move(*(*engine)->submit(request));
    while (const auto event = stream.next()) {
      const auto* token = std::get_if<TokenEvent>(&*event);
      if (token != nullptr) out[static_cast<size_t>(token->choice)].push_back(token->id);
    }
    return out;
  };
  const auto three = ids_of(3);
  EXPECT_EQ(three[0], ids_of(1)[0]);
  EXPECT_NE(three[0], three[1]);
}

}  // namespace
}  // namespace headrace
