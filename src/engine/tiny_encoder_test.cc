// Encoders of tiny random weights through the engine: against the direct computation, and whatever
// the company.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "engine/engine_impl.h"
#include "tests/tiny_bert.h"
#include "tests/tiny_engine.h"

namespace headrace {
namespace {

using tiny::Loaded;
using tiny::some_tokens;

std::unique_ptr<Engine> encoder_engine(const Loaded& loaded, int64_t max_sequences) {
  auto engine =
      make_engine(*loaded.model, {.kv_type = KvType::f32, .max_sequences = max_sequences});
  EXPECT_TRUE(engine.ok()) << engine.error().to_string();
  return std::move(engine).value();
}

Request request_for(RequestKind kind, std::vector<TokenId> prompt) {
  Request request;
  request.kind = kind;
  request.prompt = std::move(prompt);
  return request;
}

std::vector<float> values_of(Stream stream) {
  std::vector<float> out;
  while (auto event = stream.next()) {
    if (auto* embedding = std::get_if<EmbeddingEvent>(&*event)) out = std::move(embedding->values);
    if (const auto* error = std::get_if<ErrorEvent>(&*event)) {
      ADD_FAILURE() << error->error.to_string();
    }
  }
  return out;
}

std::vector<float> values_of(Engine& engine, const Request& request) {
  auto stream = engine.submit(request);
  EXPECT_TRUE(stream.ok());
  return stream.ok() ? values_of(std::move(stream).value()) : std::vector<float>();
}

void expect_near(const std::vector<float>& found, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(found[i]), expected[i], tolerance) << i;
  }
}

TEST(TinyEncoder, IsLikeTheDirectComputation) {
  const test::TinyBertOptions options;
  const test::TinyModel tiny = test::tiny_bert(options);
  const test::DirectBert direct(tiny, options);
  const Loaded loaded(tiny);
  EXPECT_TRUE(loaded.model->info().is_encoder);
  EXPECT_EQ(loaded.model->info().pooling, Pooling::mean);
  const auto engine = encoder_engine(loaded, 4);
  EXPECT_EQ(engine->max_context(), options.context);
  for (const size_t size : {1, 2, 17, 64}) {
    const auto tokens = some_tokens(size, size);
    const auto rows = direct.rows(tokens);
    std::vector<double> mean(32);
    for (const auto& row : rows) {
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += row[i] / static_cast<double>(size);
    }
    Request request = request_for(RequestKind::embed, tokens);
    expect_near(values_of(*engine, request), mean, 2e-5);
    request.pooling = Pooling::cls;
    expect_near(values_of(*engine, request), rows.front(), 5e-5);
    request.pooling = Pooling::last;
    expect_near(values_of(*engine, request), rows.back(), 5e-5);
  }
  // The second text of a pair is another type of token.
  Request pair = request_for(RequestKind::embed, some_tokens(20, 3));
  pair.pooling = Pooling::cls;
  pair.second_text = 8;
  expect_near(values_of(*engine, pair), direct.rows(pair.prompt, 8).front(), 5e-5);
}

TEST(TinyEncoder, TheHeadSaysWhatTheDirectComputationSays) {
  for (const int64_t num_classes : {1, 3}) {
    test::TinyBertOptions options;
    options.num_classes = num_classes;
    const test::TinyModel tiny = test::tiny_bert(options);
    const test::DirectBert direct(tiny, options);
    const Loaded loaded(tiny);
    EXPECT_EQ(loaded.model->info().num_classes, num_classes);
    const auto engine = encoder_engine(loaded, 8);
    std::vector<Stream> streams;
    std::vector<std::vector<double>> expected;
    for (size_t i = 0; i < 12; ++i) {  // scores and vectors share steps
      Request request = request_for(RequestKind::score, some_tokens(5 + 4 * i, i));
      request.second_text = 3;
      expected.push_back(direct.classes(direct.rows(request.prompt, 3).front()));
      streams.push_back(std::move(engine->submit(request)).value());
      values_of(*engine, request_for(RequestKind::embed, some_tokens(9, i)));
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      expect_near(values_of(std::move(streams[i])), expected[i], 1e-4);
    }
  }
}

TEST(TinyEncoder, DependsOnNoCompany) {
  const Loaded loaded(test::tiny_bert({}));
  std::vector<std::vector<float>> alone;
  {
    const auto engine = encoder_engine(loaded, 1);
    for (size_t i = 0; i < 30; ++i) {
      alone.push_back(
          values_of(*engine, request_for(RequestKind::embed, some_tokens(1 + i * 13 % 64, i))));
    }
  }
  const auto engine = encoder_engine(loaded, 8);
  std::vector<Stream> streams;
  for (size_t i = 0; i < 30; ++i) {
    auto stream = engine->submit(request_for(RequestKind::embed, some_tokens(1 + i * 13 % 64, i)));
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(stream).value());
  }
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(values_of(std::move(streams[i])), alone[i]) << "text " << i;
  }
}

TEST(TinyEncoder, RefusesWhatItCannotDo) {
  const Loaded loaded(test::tiny_bert({}));
  const auto engine = encoder_engine(loaded, 1);
  const auto code_of = [&](const Request& request) {
    auto stream = engine->submit(request);
    return stream.ok() ? "none" : std::string(error_code_name(stream.error().code));
  };
  EXPECT_EQ(code_of(request_for(RequestKind::generate, {1, 2})), "unsupported");
  EXPECT_EQ(code_of(request_for(RequestKind::score, {1, 2})), "unsupported");
  EXPECT_EQ(code_of(request_for(RequestKind::embed, some_tokens(65, 1))),
            "context_length_exceeded");
}

TEST(TinyEncoder, LoadingNamesWhatIsWrong) {
  const auto error_of = [](const test::TinyModel& tiny) {
    const std::string path = testing::TempDir() + "tiny_encoder_test.gguf";
    tiny.file.write(path);
    auto checkpoint = open_checkpoint(path);
    const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
    auto model = load_model(**checkpoint, *backend, {});
    std::filesystem::remove(path);
    return model.ok() ? "none" : model.error().to_string();
  };
  test::TinyModel extra = test::tiny_bert({});
  extra.add("blk.0.attn_rot.weight", {4}, {1, 2, 3, 4});
  EXPECT_NE(error_of(extra).find("attn_rot"), std::string::npos);
  EXPECT_NE(error_of(test::tiny_bert({.context = 65})).find("position_embd"), std::string::npos);
}

}  // namespace
}  // namespace headrace
