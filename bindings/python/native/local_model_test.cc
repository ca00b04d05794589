// Requests, sessions and closing from many threads at once. Runs under the thread sanitizer.
#include "bindings/python/native/local_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/tiny_models.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace headrace::python {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60'000};

/// A model of bytes: each token is one.
void write_model(const std::string& path, int64_t context) {
  test::TinyOptions options;
  options.vocab = 256;
  options.context = context;
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(text::ByteAlphabet::get().spelling(static_cast<uint8_t>(byte)));
  }
  test::TinyModel model = test::tiny_metadata(options);
  model.file.add("tokenizer.ggml.model", "gpt2");
  model.file.add("tokenizer.ggml.pre", "gpt-2");
  model.file.add("tokenizer.ggml.tokens", tokens);
  model.file.add("tokenizer.ggml.merges", std::vector<std::string>{});
  test::add_tiny_tensors(model);
  model.file.write(path);
}

EngineOptions four_places() {
  EngineOptions engine;
  engine.max_sequences = 4;
  return engine;
}

std::shared_ptr<LocalModel> open(int64_t context = 4096,
                                 const EngineOptions& engine = four_places()) {
  const std::string path = ::testing::TempDir() + "local_model.gguf";
  write_model(path, context);
  OpenOptions options;
  options.num_threads = 1;
  auto model = LocalModel::open(path, options, engine);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().to_string());
  std::filesystem::remove(path);
  return std::move(model).value();
}

Request a_request(TokenId first, int64_t max_tokens) {
  Request out;
  out.prompt = {first, 2, 3};
  out.sampling.temperature = 0;
  out.stop.max_tokens = max_tokens;
  return out;
}

std::shared_ptr<Run> submit(LocalModel& model, Request asked, bool keeps = false) {
  auto run = model.try_submit(asked, {.keeps_pieces = keeps}, kLong);
  EXPECT_TRUE(run.has_value());
  EXPECT_TRUE(run->ok()) << (run->ok() ? "" : run->error().to_string());
  return std::move(**run);
}

std::vector<TokenId> ids(const Run& run) {
  std::vector<TokenId> out;
  const RunState state = run.state();
  for (const TokenEvent& token : state.choices[0].tokens) out.push_back(token.id);
  return out;
}

std::vector<TokenId> generate(LocalModel& model, TokenId first) {
  const auto run = submit(model, a_request(first, 20));
  EXPECT_TRUE(run->wait_for_end(kLong));
  return ids(*run);
}

/// The logits of a few tokens, once it is their turn.
std::vector<float> logits(LocalModel& model) {
  std::vector<float> out;
  LocalModel::SessionTurn turn(model);
  while (!turn.wait(milliseconds(20))) {
  }
  const std::vector<TokenId> tokens = {1, 2, 3};
  const auto fed = model.opened().session(3)->feed(
      tokens, LogitsFor::last,
      [&](int64_t, std::span<const float> row) { out.assign(row.begin(), row.end()); });
  EXPECT_TRUE(fed.ok());
  return out;
}

TEST(LocalModelTest, PiecesJoinedAreTheText) {
  const auto model = open();
  const auto run = submit(*model, a_request(1, 50), true);
  std::string text;
  std::vector<TokenId> tokens;
  std::optional<FinishReason> reason;
  while (run->wait_for_pieces(kLong)) {
    const auto pieces = run->take_pieces();
    if (pieces.empty()) break;
    for (const Piece& piece : pieces) {
      text += piece.text;
      if (piece.token) tokens.push_back(piece.token->id);
      if (piece.reason) reason = piece.reason;
    }
  }
  EXPECT_EQ(tokens.size(), 50U);
  EXPECT_EQ(tokens, ids(*run));
  EXPECT_EQ(text, run->state().choices[0].text);
  EXPECT_EQ(text, text::replace_invalid(model->opened().tokenizer->decode(tokens, true)));
  EXPECT_EQ(reason, FinishReason::length);
}

TEST(LocalModelTest, StopStringsEndRequestsThatNobodyWaitsFor) {
  const auto model = open(1'000'000);
  const auto plain = submit(*model, a_request(1, 50));
  ASSERT_TRUE(plain->wait_for_end(kLong));
  const std::string text = plain->state().choices[0].text;
  const std::string stop = text.substr(text.size() / 2, 6);
  Request asked = a_request(1, -1);
  const auto other = model->try_submit(asked, {.stop_strings = {stop}}, kLong);
  const auto endless = submit(*model, a_request(2, -1));
  while (!(**other)->wait_for_end(milliseconds(0)) &&
         !model->wait_for_end(*endless, milliseconds(20))) {
  }
  const RunState state = (**other)->state();
  EXPECT_EQ(state.choices[0].text, text.substr(0, text.find(stop)));
  EXPECT_EQ(state.choices[0].reason, FinishReason::stop);
  EXPECT_EQ(state.choices[0].stop_string, stop);
  EXPECT_FALSE(endless->wait_for_end(milliseconds(0)));
}

// generate() of many prompts waits for one after the other: none pauses for that.
TEST(LocalModelTest, WhoWaitsForOneReadsTheOthers) {
  EngineOptions engine = four_places();
  engine.max_unread_bytes = 1000 * sizeof(Event);
  const auto model = open(10'000, engine);
  const auto first = submit(*model, a_request(1, 5000));
  const auto second = submit(*model, a_request(2, 2500));
  const auto taken_slowly = submit(*model, a_request(3, 2500), true);
  while (!model->wait_for_end(*first, kLong)) {
  }
  EXPECT_EQ(ids(*first).size(), 5000U);
  EXPECT_EQ(ids(*second).size(), 2500U) << "it has ended beside the first one";
  EXPECT_LT(ids(*taken_slowly).size(), 2500U) << "whose pieces somebody takes";
  EXPECT_EQ(model->engine().stats().num_paused, 1);
  EXPECT_TRUE(second->wait_for_end(milliseconds(0)));
  EXPECT_TRUE(taken_slowly->wait_for_end(kLong));
  EXPECT_EQ(ids(*taken_slowly).size(), 2500U);
}

TEST(LocalModelTest, ManyThreadsGetTheSameAsAlone) {
  const auto model = open();
  const auto right = logits(*model);
  std::vector<std::vector<TokenId>> alone;
  for (TokenId i = 0; i < 6; ++i) alone.push_back(generate(*model, i));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 4; ++round) {
        EXPECT_EQ(generate(*model, static_cast<TokenId>(i)), alone[i]);
        if (i % 3 == 0) {
          EXPECT_EQ(logits(*model), right);
        }
        if (i % 3 == 1) model->drop(submit(*model, a_request(1, -1)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(LocalModelTest, ASessionWaitsForRequestsAndTheyForIt) {
  const auto model = open(1'000'000);
  const auto run = submit(*model, a_request(1, -1));
  LocalModel::SessionTurn turn(*model);
  EXPECT_FALSE(turn.wait(milliseconds(50)));
  Request other = a_request(2, 5);
  EXPECT_FALSE(model->try_submit(other, {}, milliseconds(50)).has_value());
  EXPECT_EQ(other.prompt.size(), 3U) << "it is as it was";
  model->drop(run);
  EXPECT_TRUE(turn.wait(kLong));
  EXPECT_TRUE(run->wait_for_end(milliseconds(0)));
}

TEST(LocalModelTest, ClosingEndsWhatOthersWaitFor) {
  const auto model = open(1'000'000);
  std::vector<std::thread> threads;
  for (TokenId i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const auto use = model->use_for_waiting();
      Request asked = a_request(i, -1);
      const auto run = model->try_submit(asked, {}, kLong);
      ASSERT_TRUE(run.has_value());
      if (!run->ok()) return;  // it came too late
      EXPECT_TRUE((**run)->wait_for_end(kLong));
      EXPECT_EQ((**run)->state().choices[0].reason, FinishReason::cancelled);
    });
  }
  std::this_thread::sleep_for(milliseconds(100));
  model->close();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(model->use().error().code, ErrorCode::invalid_argument);
  Request late = a_request(1, 5);
  EXPECT_FALSE(model->try_submit(late, {}, kLong)->ok());
  model->close();
}

TEST(LocalModelTest, WhoUsesItMayCloseIt) {
  const auto model = open();
  {
    const auto use = model->use();
    ASSERT_TRUE(use.ok());
    model->close();
    EXPECT_TRUE(model->is_closing());
    EXPECT_EQ(model->opened().context, 4096) << "it is still there";
  }
  EXPECT_FALSE(model->use().ok());
}

TEST(LocalModelTest, ARunOutlivesItsModel) {
  auto model = open();
  const auto run = submit(*model, a_request(1, 20));
  model.reset();
  EXPECT_TRUE(run->wait_for_end(kLong));
  EXPECT_TRUE(run->state().choices[0].reason.has_value());
}

}  // namespace
}  // namespace headrace::python
