// A group of sequences gives what a session gives for each of them alone, and can be wound back.
#include "engine/scheduler/sequence_group.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/checkpoint.h"
#include "engine/session/session.h"
#include "model/model.h"
#include "sampling/logprobs.h"
#include "tests/tiny_models.h"

namespace headrace {
namespace {

/// Layers with a window and without.
struct LoadedGemma3 {
  LoadedGemma3() {
    const std::string path = testing::TempDir() + "sequence_group_test.gguf";
    test::tiny_model(test::tiny_gemma3_options()).file.write(path);
    checkpoint = std::move(open_checkpoint(path).value());
    backend = make_cpu_backend({.isa = available_isas().back(), .num_threads = 2});
    model = std::move(load_model(*checkpoint, *backend, {}).value());
    std::filesystem::remove(path);
  }

  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

std::vector<TokenId> group_tokens(size_t count, size_t salt) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<TokenId>((7 * i * i + 13 * i + salt * 29 + 3) % 50);
  }
  return tokens;
}

/// `count` greedy tokens after `prompt`, by a session.
std::vector<TokenId> alone(Model& model, const std::vector<TokenId>& prompt, size_t count) {
  const auto session = make_session(model, {.max_tokens = 200, .chunk_tokens = 16});
  std::vector<TokenId> out;
  const auto take = [&](int64_t, std::span<const float> logits) { out.push_back(argmax(logits)); };
  EXPECT_TRUE(session->feed(prompt, LogitsFor::last, take).ok());
  while (out.size() < count) {
    const TokenId last = out.back();
    EXPECT_TRUE(session->feed({&last, 1}, LogitsFor::last, take).ok());
  }
  return out;
}

TEST(SequenceGroup, GivesWhatEachSequenceGivesAlone) {
  const LoadedGemma3 loaded;
  const auto group =
      make_sequence_group(*loaded.model, {.max_tokens = {120, 90, 60}, .chunk_tokens = 16});
  const std::vector<size_t> lengths = {70, 35, 1};
  std::vector<TokenId> next;
  std::vector<std::vector<TokenId>> expected;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto prompt = group_tokens(lengths[i], i);
    const auto token = group->feed(i, prompt);
    ASSERT_TRUE(token.ok()) << token.error().to_string();
    next.push_back(*token);
    expected.push_back(alone(*loaded.model, prompt, 20));
  }
  for (size_t step = 0; step < 20; ++step) {
    for (size_t i = 0; i < next.size(); ++i) EXPECT_EQ(next[i], expected[i][step]) << i;
    ASSERT_TRUE(group->decode(next).ok());
  }
  EXPECT_EQ(group->num_tokens(0), 90);
  EXPECT_EQ(group->num_tokens(2), 21);
}

TEST(SequenceGroup, RewindingComesBackToTheSameTokens) {
  const LoadedGemma3 loaded;
  const auto group =
      make_sequence_group(*loaded.model, {.max_tokens = {160, 160}, .chunk_tokens = 32});
  std::vector<std::vector<TokenId>> runs;
  for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(group->feed(i, group_tokens(60, i)).ok());
  for (int run = 0; run < 3; ++run) {
    std::vector<TokenId>& tokens = runs.emplace_back();
    std::vector<TokenId> next = {5, 9};
    for (int step = 0; step < 90; ++step) {  // far past the window
      ASSERT_TRUE(group->decode(next).ok());
      tokens.insert(tokens.end(), next.begin(), next.end());
    }
    for (size_t i = 0; i < 2; ++i) group->rewind(i, 60);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
}

TEST(SequenceGroup, SaysWhatDoesNotFit) {
  const LoadedGemma3 loaded;
  const auto group = make_sequence_group(*loaded.model, {.max_tokens = {10, 2}});
  EXPECT_EQ(group->feed(1, group_tokens(3, 0)).error().code, ErrorCode::context_length_exceeded);
  EXPECT_EQ(group->num_tokens(1), 0);
  const std::vector<TokenId> wrong = {50};
  EXPECT_EQ(group->feed(0, wrong).error().code, ErrorCode::out_of_range);
  ASSERT_TRUE(group->feed(1, group_tokens(2, 0)).ok());
  std::vector<TokenId> next = {1, 1};
  EXPECT_EQ(group->decode(next).error().code, ErrorCode::context_length_exceeded);
  EXPECT_EQ(group->num_tokens(0), 0);
  EXPECT_TRUE(group->decode(std::span(next).first(1)).ok());
}

}  // namespace
}  // namespace headrace
