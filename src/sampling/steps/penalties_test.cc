#include <gtest/gtest.h>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_edits.h"

namespace headrace {
namespace {

class Penalties : public testing::Test {
 protected:
  std::vector<float> apply(const SamplingParams& params, const std::vector<TokenId>& tokens,
                           int64_t num_prompt_tokens) {
    edits_.begin_row();
    apply_penalties(params, {tokens, num_prompt_tokens}, edits_);
    return edited({4, -4, 8, 1}, edits_);
  }
  LogitEdits edits_;
};

TEST_F(Penalties, RepetitionCountsPromptAndCompletionOnceEach) {
  const SamplingParams params{.repetition_penalty = 2.0F};
  EXPECT_EQ(apply(params, {0, 0, 1, 1, 0}, 3), (std::vector<float>{2, -8, 8, 1}));
}

TEST_F(Penalties, PresenceAndFrequencyCountTheCompletionOnly) {
  const SamplingParams params{.presence_penalty = 0.5F, .frequency_penalty = 0.25F};
  EXPECT_EQ(apply(params, {0, 1, 2, 2, 3}, 2), (std::vector<float>{4, -4, 7, 0.25F}));
}

TEST_F(Penalties, LookBackIsCut) {
  const SamplingParams params{.repetition_penalty = 2.0F, .penalty_last_n = 2};
  EXPECT_EQ(apply(params, {0, 1, 2, 3}, 4), (std::vector<float>{4, -4, 4, 0.5F}));
  const SamplingParams none{.repetition_penalty = 2.0F, .penalty_last_n = 0};
  EXPECT_EQ(apply(none, {0, 1, 2, 3}, 4), (std::vector<float>{4, -4, 8, 1}));
}

TEST_F(Penalties, TheNextRowStartsAfresh) {
  const SamplingParams params{.repetition_penalty = 2.0F, .frequency_penalty = 1.0F};
  apply(params, {0, 1, 2, 3}, 0);
  EXPECT_EQ(apply(params, {2}, 0), (std::vector<float>{4, -4, 3, 1}));
}

}  // namespace
}  // namespace headrace
