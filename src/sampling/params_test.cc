#include "headrace/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

namespace headrace {
namespace {

auto breakers(std::vector<TokenId> ids) {
  return std::make_shared<const std::vector<TokenId>>(std::move(ids));
}

TEST(ValidateParams, DefaultsAreFine) {
  EXPECT_TRUE(validate({}, {}, 10).ok());
}

TEST(ValidateParams, EachFaultNamesItsParameter) {
  using Edit = std::function<void(SamplingParams&, StopParams&)>;
  const std::vector<std::pair<std::string, Edit>> faults = {
      {"logit_bias",
       [](auto& s, auto&) {
         s.logit_bias = {{10, 1.0F}};
       }},
      {"logit_bias",
       [](auto& s, auto&) {
         s.logit_bias = {{-1, 1.0F}};
       }},
      {"logit_bias",
       [](auto& s, auto&) {
         s.logit_bias = {{1, NAN}};
       }},
      {"repetition_penalty", [](auto& s, auto&) { s.repetition_penalty = 0; }},
      {"repetition_penalty", [](auto& s, auto&) { s.repetition_penalty = NAN; }},
      {"presence_penalty", [](auto& s, auto&) { s.presence_penalty = HUGE_VALF; }},
      {"frequency_penalty", [](auto& s, auto&) { s.frequency_penalty = NAN; }},
      {"penalty_last_n", [](auto& s, auto&) { s.penalty_last_n = -2; }},
      {"temperature", [](auto& s, auto&) { s.temperature = -0.1F; }},
      {"temperature", [](auto& s, auto&) { s.temperature = HUGE_VALF; }},
      {"top_k", [](auto& s, auto&) { s.top_k = -1; }},
      {"typical_p", [](auto& s, auto&) { s.typical_p = 0; }},
      {"top_p", [](auto& s, auto&) { s.top_p = 1.5F; }},
      {"top_p", [](auto& s, auto&) { s.top_p = NAN; }},
      {"min_p", [](auto& s, auto&) { s.min_p = -0.5F; }},
      {"dry_multiplier", [](auto& s, auto&) { s.dry_multiplier = -0.5F; }},
      {"dry_multiplier", [](auto& s, auto&) { s.dry_multiplier = NAN; }},
      {"dry_base", [](auto& s, auto&) { s.dry_base = 0.5F; }},
      {"dry_base", [](auto& s, auto&) { s.dry_base = HUGE_VALF; }},
      {"dry_allowed_length", [](auto& s, auto&) { s.dry_allowed_length = -1; }},
      {"dry_penalty_last_n", [](auto& s, auto&) { s.dry_penalty_last_n = -2; }},
      {"dry_breakers",
       [](auto& s, auto&) {
         s.dry_breakers = breakers({3, 10});
       }},
      {"dry_breakers", [](auto& s, auto&) { s.dry_breakers = breakers({-1}); }},
      {"dry_breakers",
       [](auto& s, auto&) {
         s.dry_breakers = breakers({4, 3});
       }},
      {"dry_breakers",
       [](auto& s, auto&) {
         s.dry_breakers = breakers({3, 3});
       }},
      {"xtc_probability", [](auto& s, auto&) { s.xtc_probability = 1.5F; }},
      {"xtc_probability", [](auto& s, auto&) { s.xtc_probability = NAN; }},
      {"xtc_threshold", [](auto& s, auto&) { s.xtc_threshold = -0.1F; }},
      {"mirostat", [](auto& s, auto&) { s.mirostat = 3; }},
      {"mirostat", [](auto& s, auto&) { s.mirostat = -1; }},
      {"mirostat_tau", [](auto& s, auto&) { s.mirostat_tau = -1; }},
      {"mirostat_tau", [](auto& s, auto&) { s.mirostat_tau = HUGE_VALF; }},
      {"mirostat_eta", [](auto& s, auto&) { s.mirostat_eta = NAN; }},
      {"max_tokens", [](auto&, auto& s) { s.max_tokens = -2; }},
      {"min_tokens", [](auto&, auto& s) { s.min_tokens = -1; }},
      {"min_tokens",
       [](auto&, auto& s) {
         s.max_tokens = 3;
         s.min_tokens = 4;
       }},
      {"stop_token_ids", [](auto&, auto& s) { s.stop_token_ids = {10}; }},
  };
  for (const auto& [name, edit] : faults) {
    SamplingParams sampling;
    StopParams stop;
    edit(sampling, stop);
    const auto result = validate(sampling, stop, 10);
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_EQ(result.error().where, name);
    EXPECT_EQ(result.error().code, ErrorCode::out_of_range);
  }
}

}  // namespace
}  // namespace headrace
