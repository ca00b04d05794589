// Requests for embeddings, on the checksum model: what comes out, in which steps, and how it ends.
#include "engine/test_engine.h"

namespace headrace {
namespace {

Request embed_of(std::vector<TokenId> prompt) {
  Request request;
  request.kind = RequestKind::embed;
  request.prompt = std::move(prompt);
  return request;
}

struct Embedded {
  std::vector<float> values;
  std::optional<FinishEvent> finish;
  std::optional<Error> error;
};

Embedded read_embedding(Stream& stream) {
  Embedded out;
  while (auto event = stream.next()) {
    if (auto* embedding = std::get_if<EmbeddingEvent>(&*event)) {
      EXPECT_TRUE(out.values.empty() && !out.finish);
      out.values = std::move(embedding->values);
    } else if (const auto* finish = std::get_if<FinishEvent>(&*event)) {
      out.finish = *finish;
    } else {
      out.error = std::get<ErrorEvent>(*event).error;
    }
  }
  return out;
}

EngineOptions encoder_options() {
  EngineOptions options = small_options();
  options.chunk_tokens = 200;
  options.max_sequences = 8;
  return options;
}

Fixture encoder(const EngineOptions& options = encoder_options()) {
  return Fixture(options, {{.block_tokens = 16, .window = 0}}, nullptr, true);
}

TEST(Embedding, AVectorAndAnEnd) {
  Fixture fixture(small_options());
  Request request = embed_of(prompt_of(100, 3));  // in four chunks
  auto stream = fixture.submit(request);
  fixture.run_until_idle();
  const Embedded got = read_embedding(stream);
  ASSERT_TRUE(got.finish);
  EXPECT_EQ(got.values, checksum_vector(request.prompt));
  EXPECT_EQ(got.finish->reason, FinishReason::stop);
  EXPECT_EQ(got.finish->stats.prompt_tokens, 100);
  EXPECT_EQ(got.finish->stats.completion_tokens, 0);
  EXPECT_GT(got.finish->stats.prefill_ms, 0);
  EXPECT_EQ(fixture.engine->stats().num_embeddings, 1);
  EXPECT_EQ(fixture.engine->stats().generated_tokens, 0);
  fixture.expect_all_blocks_free();
}

TEST(Embedding, BesideRequestsThatGenerate) {
  Fixture fixture(small_options());
  std::vector<Stream> embeds;
  std::vector<Stream> texts;
  for (TokenId i = 0; i < 6; ++i) {
    embeds.push_back(fixture.submit(embed_of(prompt_of(20 + 17 * static_cast<size_t>(i), i))));
    texts.push_back(fixture.submit(request_of(prompt_of(40, 100 + i), 20, 5)));
  }
  fixture.run_until_idle();
  for (TokenId i = 0; i < 6; ++i) {
    EXPECT_EQ(read_embedding(embeds[static_cast<size_t>(i)]).values,
              checksum_vector(prompt_of(20 + 17 * static_cast<size_t>(i), i)));
    expect_same(read(texts[static_cast<size_t>(i)]),
                expected(request_of(prompt_of(40, 100 + i), 20, 5), 200));
  }
}

TEST(Embedding, ThePrefixCacheServesTheLastTokensVectorAlone) {
  Fixture fixture(small_options(), {{.block_tokens = 16, .window = 0}});
  for (const Pooling pooling : {Pooling::last, Pooling::mean, Pooling::cls}) {
    Request request = embed_of(prompt_of(100, 3));
    request.pooling = pooling;
    for (int again = 0; again < 2; ++again) {
      auto stream = fixture.submit(request);
      fixture.run_until_idle();
      const Embedded got = read_embedding(stream);
      ASSERT_TRUE(got.finish);
      EXPECT_EQ(got.values, checksum_vector(request.prompt));
      const bool is_cached = pooling == Pooling::last && again == 1;
      EXPECT_EQ(got.finish->stats.cached_tokens, is_cached ? 99 : 0) << pooling_name(pooling);
    }
  }
}

TEST(Embedding, AnEncoderComputesATextInOneStep) {
  Fixture fixture = encoder();
  std::vector<Stream> streams;
  // 90 + 90 rows fit a step of 200, a third text does not; what is short may not be split either.
  for (TokenId i = 0; i < 5; ++i) streams.push_back(fixture.submit(embed_of(prompt_of(90, i))));
  fixture.runner->before_step([](const Batch& batch) {
    for (const BatchSequence& part : batch.sequences) {
      EXPECT_EQ(part.first_position, 0);
      EXPECT_EQ(part.num_rows, 90);
      EXPECT_EQ(part.num_embedded, 90);
    }
  });
  fixture.run_until_idle();
  EXPECT_EQ(fixture.runner->num_steps(), 3);
  EXPECT_EQ(fixture.runner->most_rows(), 180);
  for (TokenId i = 0; i < 5; ++i) {
    EXPECT_EQ(read_embedding(streams[static_cast<size_t>(i)]).values,
              checksum_vector(prompt_of(90, i)));
  }
  fixture.expect_all_blocks_free();
  EXPECT_EQ(fixture.engine->stats().groups[0].num_cached, 0) << "nobody else could use the keys";
}

TEST(Embedding, ManyShortTextsShareAStep) {
  Fixture fixture = encoder();
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 40; ++i) streams.push_back(fixture.submit(embed_of(prompt_of(10, i))));
  fixture.run_until_idle();
  EXPECT_EQ(fixture.runner->num_steps(), 5) << "eight at once";
  for (TokenId i = 0; i < 40; ++i) {
    EXPECT_EQ(read_embedding(streams[static_cast<size_t>(i)]).values,
              checksum_vector(prompt_of(10, i)));
  }
}

TEST(Embedding, AnEncoderGeneratesNothing) {
  Fixture fixture = encoder();
  const auto refused = fixture.engine->submit(request_of({1, 2, 3}, 5, 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message.find("embedding model"), std::string::npos);
}

TEST(Embedding, WhatIsRefused) {
  Fixture fixture(small_options());
  const auto error_of = [&](const Request& request) {
    auto stream = fixture.engine->submit(request);
    EXPECT_FALSE(stream.ok());
    return stream.ok() ? Error{} : stream.error();
  };
  Request request = embed_of(prompt_of(201, 1));
  const Error too_long = error_of(request);
  EXPECT_EQ(too_long.code, ErrorCode::context_length_exceeded);
  EXPECT_NE(too_long.message.find("201"), std::string::npos);
  EXPECT_NE(too_long.message.find("200"), std::string::npos);
  EXPECT_EQ(error_of(embed_of({})).where, "prompt");
  request = embed_of({1, 2});
  request.num_choices = 2;
  EXPECT_EQ(error_of(request).where, "num_choices");
  request.num_choices = 1;
  request.second_text = 3;
  EXPECT_EQ(error_of(request).where, "second_text");
  request.second_text = -1;
  request.kind = RequestKind::score;
  EXPECT_EQ(error_of(request).code, ErrorCode::unsupported);
  // As long as the context is not too long.
  auto stream = fixture.submit(embed_of(prompt_of(200, 1)));
  fixture.run_until_idle();
  EXPECT_EQ(read_embedding(stream).values, checksum_vector(prompt_of(200, 1)));
}

TEST(Embedding, NoNumbersEndTheirOwnRequestAlone) {
  Fixture fixture = encoder();
  auto bad = fixture.submit(embed_of(prompt_of(30, 1)));
  auto good = fixture.submit(embed_of(prompt_of(30, 2)));
  fixture.runner->spoil_logits_if(
      [](const BatchSequence& part) { return part.sequence->request->prompt[0] == 1; });
  fixture.run_until_idle();
  const Embedded failed = read_embedding(bad);
  ASSERT_TRUE(failed.error);
  EXPECT_TRUE(failed.values.empty());
  EXPECT_NE(failed.error->message.find("no numbers"), std::string::npos);
  EXPECT_EQ(read_embedding(good).values, checksum_vector(prompt_of(30, 2)));
  EXPECT_EQ(fixture.engine->stats().num_bad_logits, 1);
}

TEST(Embedding, CancelledAndLate) {
  Fixture fixture = encoder();
  auto cancelled = fixture.submit(embed_of(prompt_of(30, 1)));
  Request request = embed_of(prompt_of(30, 2));
  request.timeout_ms = 5;
  auto late = fixture.submit(request);
  auto other = fixture.submit(embed_of(prompt_of(30, 3)));
  cancelled.cancel();
  fixture.clock->advance_ms(10);
  fixture.run_until_idle();
  EXPECT_EQ(read_embedding(cancelled).finish->reason, FinishReason::cancelled);
  EXPECT_EQ(read_embedding(late).error->code, ErrorCode::deadline_exceeded);
  EXPECT_EQ(read_embedding(other).values, checksum_vector(prompt_of(30, 3)));
}

TEST(Embedding, AStepThatFailsIsRepeated) {
  for (const bool is_encoder : {false, true}) {
    Fixture fixture = is_encoder ? encoder() : Fixture(small_options());
    std::vector<Stream> streams;
    for (TokenId i = 0; i < 3; ++i) streams.push_back(fixture.submit(embed_of(prompt_of(60, i))));
    fixture.runner->fail_next_step();
    fixture.run_until_idle();
    for (TokenId i = 0; i < 3; ++i) {
      EXPECT_EQ(read_embedding(streams[static_cast<size_t>(i)]).values,
                checksum_vector(prompt_of(60, i)));
    }
  }
}

}  // namespace
}  // namespace headrace
