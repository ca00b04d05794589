#include "cli/sampling_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "text/breaker_tokens.h"
#include "text/test_vocabulary.h"

namespace headrace::cli {
namespace {

using Texts = std::vector<std::string>;

TEST(SamplingOptions, SamplersReachTheParameters) {
  SamplingArgs args;
  args.dry_multiplier = 0.5;
  args.dry_base = 2;
  args.dry_allowed_length = 3;
  args.dry_penalty_last_n = 64;
  args.xtc_probability = 0.25;
  args.xtc_threshold = 0.125;
  args.mirostat = 2;
  args.mirostat_eta = 0.75;
  args.mirostat_tau = 4;
  const auto params = sampling_of(args, {}, 100);
  ASSERT_TRUE(params.ok()) << params.error().to_string();
  EXPECT_EQ(params->dry_multiplier, 0.5F);
  EXPECT_EQ(params->dry_base, 2);
  EXPECT_EQ(params->dry_allowed_length, 3);
  EXPECT_EQ(params->dry_penalty_last_n, 64);
  EXPECT_EQ(params->xtc_probability, 0.25F);
  EXPECT_EQ(params->xtc_threshold, 0.125F);
  EXPECT_EQ(params->mirostat, 2);
  EXPECT_EQ(params->mirostat_eta, 0.75F);
  EXPECT_EQ(params->mirostat_tau, 4);
}

TEST(SamplingOptions, FaultsNameTheFlag) {
  using Edit = std::function<void(SamplingArgs&)>;
  const std::vector<std::pair<std::string, Edit>> faults = {
      {"--dry-multiplier", [](auto& args) { args.dry_multiplier = -1; }},
      {"--dry-base", [](auto& args) { args.dry_base = 0.5; }},
      {"--dry-allowed-length", [](auto& args) { args.dry_allowed_length = -1; }},
      {"--dry-penalty-last-n", [](auto& args) { args.dry_penalty_last_n = -2; }},
      {"--dry-sequence-breaker",
       [](auto& args) {
         args.dry_breakers = {"none", "a"};
       }},
      {"--dry-sequence-breaker", [](auto& args) { args.dry_breakers = {"a\\"}; }},
      {"--dry-sequence-breaker", [](auto& args) { args.dry_breakers = {"\\x"}; }},
      {"--dry-sequence-breaker", [](auto& args) { args.dry_breakers = {""}; }},
      {"--dry-sequence-breaker",
       [](auto& args) { args.dry_breakers = Texts(kMaxBreakers + 1, "a"); }},
      {"--xtc-probability", [](auto& args) { args.xtc_probability = 2; }},
      {"--xtc-threshold", [](auto& args) { args.xtc_threshold = -1; }},
      {"--mirostat", [](auto& args) { args.mirostat = 3; }},
      {"--mirostat-lr", [](auto& args) { args.mirostat_eta = -1; }},
      {"--mirostat-ent", [](auto& args) { args.mirostat_tau = -1; }},
  };
  for (const auto& [flag, edit] : faults) {
    SamplingArgs args;
    edit(args);
    const auto checked = check_sampling(args);
    ASSERT_FALSE(checked.ok()) << flag;
    EXPECT_EQ(checked.error().where, flag);
    EXPECT_EQ(checked.error().code, ErrorCode::invalid_argument);
  }
}

TEST(SamplingOptions, BreakersAreTexts) {
  const auto texts_of = [](const Texts& given) {
    SamplingArgs args;
    args.dry_breakers = given;
    return *dry_breakers_of(args);
  };
  EXPECT_EQ(texts_of({}), default_breakers());
  EXPECT_EQ(texts_of({"none"}), Texts{});
  EXPECT_EQ(texts_of({"a b", "\\n\\t", "\\\\n"}), (Texts{"a b", "\n\t", "\\n"}));
}

TEST(SamplingOptions, BreakersBecomeTokensWhereDryIsOn) {
  const std::shared_ptr<const Tokenizer> tokenizer = text::byte_level_example().build();
  SamplingArgs args;
  args.dry_breakers = {"l", "never"};
  SamplingParams params;
  EXPECT_EQ(*set_dry_breakers(args, tokenizer, params), Texts{});
  EXPECT_EQ(params.dry_breakers, nullptr);
  params.dry_multiplier = 1;
  const auto warnings = set_dry_breakers(args, tokenizer, params);
  ASSERT_EQ(warnings->size(), 1U);
  EXPECT_NE(warnings->front().find("'never'"), std::string::npos) << warnings->front();
  EXPECT_EQ(*params.dry_breakers, *BreakerFinder(tokenizer).find({"l"}).ids);
}

TEST(SamplingOptions, SaysWhatMirostatReplaces) {
  SamplingArgs args;
  args.top_k = 5;
  args.min_p = 0.1;
  SamplingParams params;
  EXPECT_EQ(sampling_warnings(args, params).size(), 0U);
  params.mirostat = 2;
  EXPECT_EQ(sampling_warnings(args, params), (Texts{"--top-k does nothing, for mirostat is on",
                                                    "--min-p does nothing, for mirostat is on"}));
  params.temperature = 0;
  EXPECT_EQ(sampling_warnings(args, params).size(), 0U);
}

}  // namespace
}  // namespace headrace::cli
