// Several models in one process: their answers are those of each alone, their memory is one.
#include "app/open_models.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/step_turns.h"
#include "tests/tiny_model_file.h"
#include "tests/tiny_models.h"

namespace headrace {
namespace {

using test::ModelFile;
constexpr uint64_t kMuch = uint64_t{1} << 30;

OpenOptions two_threads() {
  OpenOptions options;
  options.num_threads = 2;
  options.memory_bytes = kMuch;
  return options;
}

class OpenModels : public testing::Test {
 protected:
  Error error_of(const std::vector<ModelSpec>& specs, const OpenOptions& options) {
    const auto opened = open_models(specs, options);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Error() : opened.error();
  }

  const ModelFile first_{"open_models_first", test::TinyOptions()};
  const ModelFile second_{"open_models_second", test::tiny_gemma3_options()};
};

Request some_request(size_t salt) {
  Request request;
  for (size_t i = 0; i < 10 + salt * 7; ++i) {
    request.prompt.push_back(static_cast<TokenId>((i * 13 + salt * 29) % 256));
  }
  request.sampling.temperature = salt % 2 == 0 ? 0.0F : 0.9F;
  request.sampling.seed = salt;
  request.stop.max_tokens = 20;
  request.stop.ignore_eos = true;
  request.num_logprobs = 1;
  return request;
}

struct Said {
  std::vector<TokenId> ids;
  std::vector<float> logprobs;
  bool operator==(const Said&) const = default;
};

Said read_all(Stream stream) {
  Said said;
  while (const auto event = stream.next()) {
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      said.ids.push_back(token->id);
      for (const TokenLogprob& one : token->top) said.logprobs.push_back(one.logprob);
    }
    if (const auto* error = std::get_if<ErrorEvent>(&*event)) {
      ADD_FAILURE() << error->error.to_string();
    }
  }
  return said;
}

EngineOptions some_places() {
  EngineOptions options;
  options.max_sequences = 4;
  return options;
}

TEST_F(OpenModels, AnswerAsEachDoesAlone) {
  constexpr size_t kRequests = 8;
  std::vector<std::vector<Said>> alone;
  for (const ModelFile* file : {&first_, &second_}) {
    auto opened = open_model(file->path(), two_threads());
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    const auto engine = std::move((*opened)->start_engine(some_places()).value());
    auto& answers = alone.emplace_back();
    for (size_t i = 0; i < kRequests; ++i) {
      answers.push_back(read_all(std::move(engine->submit(some_request(i)).value())));
      EXPECT_EQ(answers.back().ids.size(), 20U);
    }
  }
  auto opened = open_models({{.path = first_.path()}, {.path = second_.path()}}, two_threads());
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  ASSERT_EQ(opened->models.size(), 2U);
  std::vector<std::unique_ptr<Engine>> engines;
  for (auto& model : opened->models) {
    EXPECT_EQ(model->backend->num_threads(), opened->pool->num_threads());
    engines.push_back(std::move(model->start_engine(some_places()).value()));
  }
  EXPECT_EQ(engines[0]->model().name, "open_models_first");
  EXPECT_EQ(engines[1]->model().name, "open_models_second");
  std::vector<Stream> streams;
  for (size_t i = 0; i < kRequests; ++i) {
    for (auto& engine : engines) {
      streams.push_back(std::move(engine->submit(some_request(i)).value()));
    }
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(read_all(std::move(streams[i])), alone[i % 2][i / 2]) << i;
  }
}

TEST_F(OpenModels, ShareTheMemory) {
  const auto opened = open_models(
      {{.path = first_.path(), .name = "a"}, {.path = second_.path(), .name = "b"}}, two_threads());
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  const uint64_t a = opened->models[0]->kv_budget_bytes;
  const uint64_t b = opened->models[1]->kv_budget_bytes;
  EXPECT_NEAR(static_cast<double>(a), static_cast<double>(b), 1 << 20);
  EXPECT_LT(a + b, budget_bytes(kMuch));
  EXPECT_GT(a + b, budget_bytes(kMuch) - (50 << 20)) << "the models are tiny";
  EXPECT_EQ(opened->models[0]->options.name, "a");
}

TEST_F(OpenModels, MayAskForTheirPart) {
  constexpr uint64_t kAsked = 200 << 10;
  auto opened = open_models({{.path = first_.path(), .kv_bytes = kAsked}, {.path = second_.path()}},
                            two_threads());
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  EngineOptions options;
  options.max_sequences = 64;
  const auto engine = std::move(opened->models[0]->start_engine(options).value());
  const auto groups = engine->stats().groups;
  uint64_t bytes = 0;
  for (const auto& group : groups) {
    bytes += static_cast<uint64_t>(group.num_blocks) * group.block_bytes;
  }
  EXPECT_LE(bytes, kAsked);
  EXPECT_GT(bytes, kAsked / 2);
  EXPECT_GT(opened->models[1]->kv_budget_bytes, kMuch / 2);
}

TEST_F(OpenModels, AContextAndATemplateEach) {
  const auto opened = open_models(
      {{.path = first_.path(), .context = 64, .chat_template = "x"}, {.path = second_.path()}},
      two_threads());
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  EXPECT_EQ(opened->models[0]->context, 64);
  EXPECT_EQ(opened->models[1]->context, 256);
  EXPECT_TRUE(opened->models[0]->chat_template);
  EXPECT_FALSE(opened->models[1]->chat_template);
}

TEST_F(OpenModels, OneAloneTakesNoTurns) {
  const auto opened = open_models({{.path = first_.path()}}, two_threads());
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  EXPECT_EQ(opened->turns, nullptr);
  const auto same = open_model(first_.path(), two_threads());
  EXPECT_EQ(opened->models[0]->context, (*same)->context);
  EXPECT_NEAR(static_cast<double>(opened->models[0]->kv_budget_bytes),
              static_cast<double>((*same)->kv_budget_bytes), 16);
}

TEST_F(OpenModels, SayWhichDoesNotFit) {
  OpenOptions options = two_threads();
  options.memory_bytes = 1 << 10;
  const std::vector<ModelSpec> specs{{.path = first_.path()}, {.path = second_.path()}};
  EXPECT_EQ(error_of(specs, options).code, ErrorCode::resource_exhausted);
  EXPECT_NE(error_of(specs, options).message.find("open_models_first"), std::string::npos);
  options.memory_bytes = kMuch;
  const Error error =
      error_of({{.path = first_.path()}, {.path = second_.path(), .kv_bytes = kMuch}}, options);
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted);
  EXPECT_NE(error.message.find("the model open_models_second"), std::string::npos) << error.message;
}

TEST_F(OpenModels, RefuseWhatMakesNoSense) {
  EXPECT_EQ(error_of({}, two_threads()).code, ErrorCode::invalid_argument);
  const Error twice = error_of(
      {{.path = first_.path(), .name = "x"}, {.path = second_.path(), .name = "x"}}, two_threads());
  EXPECT_EQ(twice.code, ErrorCode::invalid_argument);
  EXPECT_NE(twice.message.find("'x'"), std::string::npos) << twice.message;
  const Error missing =
      error_of({{.path = first_.path()}, {.path = "/no/such.gguf"}}, two_threads());
  EXPECT_EQ(missing.code, ErrorCode::not_found);
  EXPECT_NE(missing.to_string().find("/no/such.gguf"), std::string::npos);
  OpenOptions options = two_threads();
  options.chunk_tokens = 0;
  EXPECT_EQ(error_of({{.path = first_.path()}}, options).code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace headrace
