// DRY, XTC and mirostat in the bodies of requests.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "api/params_json.h"
#include "api/prepare_parts.h"
#include "api/prepared_request.h"
#include "api/protocol.h"
#include "api/test_model.h"
#include "text/test_vocabulary.h"

namespace headrace::api {
namespace {

using Texts = std::vector<std::string>;

struct SamplerRead {
  GenerationParams params;
  Result<void> status;
  Texts notes;  ///< which of the body's fields were left out
};

ParamsContext sampler_context() {
  ParamsContext context = test_context();
  context.breakers = std::make_shared<const BreakerFinder>(text::byte_level_example().build());
  return context;
}

SamplerRead read_samplers_of(std::string_view body,
                             const ParamsContext& context = sampler_context()) {
  const Json json = parsed(body);
  Fields fields(json);
  SamplerRead out{{}, {}, {}};
  read_generation_params(fields, context, out.params);
  out.status = fields.status();
  if (out.status.ok()) out.status = check_params(out.params, context.vocab_size);
  out.notes = fields.unknown();
  return out;
}

Texts notes_of(std::string_view body, const ParamsContext& context = sampler_context()) {
  const SamplerRead read = read_samplers_of(body, context);
  EXPECT_TRUE(read.status.ok()) << read.status.error().to_string();
  return read.notes;
}

TEST(SamplerParams, FaultsNameTheField) {
  const std::vector<std::pair<std::string, Texts>> faults = {
      {"dry_multiplier", {"-0.1", "1e10", "\"1\"", "[]"}},
      {"dry_base", {"0.99", "1e10", "true"}},
      {"dry_allowed_length", {"-1", "2147483648", "1.5"}},
      {"dry_penalty_last_n", {"-2", "2147483648", "\"\""}},
      {"dry_sequence_breakers", {"\"\\n\"", "{}", "[\"\"]", "7"}},
      {"dry_sequence_breakers[1]", {"[\"a\",5]", "[\"a\",null]"}},
      {"xtc_probability", {"-0.1", "1.1"}},
      {"xtc_threshold", {"-0.1", "1.1", "\"a\""}},
      {"mirostat", {"3", "-1", "true", "1.5"}},
      {"mirostat_mode", {"3", "-1"}},
      {"mirostat_tau", {"-1", "1001"}},
      {"mirostat_eta", {"-0.1", "1001"}},
  };
  for (const auto& [where, values] : faults) {
    const std::string name = where.substr(0, where.find('['));
    for (const std::string& value : values) {
      const auto status = read_samplers_of("{\"" + name + "\":" + value + "}").status;
      ASSERT_FALSE(status.ok()) << name << " " << value;
      EXPECT_EQ(status.error().where, where) << value;
    }
  }
  const Json many = {{"dry_sequence_breakers", Texts(kMaxBreakers + 1, "a")}};
  EXPECT_FALSE(read_samplers_of(many.dump()).status.ok());
  const Json longest = {{"dry_sequence_breakers", Texts{std::string(kMaxBreakerBytes + 1, 'a')}}};
  EXPECT_FALSE(read_samplers_of(longest.dump()).status.ok());
}

TEST(SamplerParams, BreakersBecomeTokens) {
  const ParamsContext context = sampler_context();
  const auto tokens_of = [&](const Texts& texts) { return *context.breakers->find(texts).ids; };
  const auto given = [&](std::string_view body) {
    const SamplerRead read = read_samplers_of(body, context);
    EXPECT_TRUE(read.status.ok());
    const auto& ids = read.params.sampling.dry_breakers;
    return ids == nullptr ? std::vector<TokenId>{-1} : *ids;
  };
  EXPECT_EQ(given(R"({"dry_multiplier":1})"), tokens_of(default_breakers()));
  EXPECT_EQ(given(R"({"dry_multiplier":1,"dry_sequence_breakers":["l"]})"), tokens_of({"l"}));
  EXPECT_EQ(given(R"({"dry_multiplier":1,"dry_sequence_breakers":[]})"), std::vector<TokenId>{});
  EXPECT_EQ(given(R"({"dry_multiplier":0})"), std::vector<TokenId>{-1}) << "none are looked for";

  ParamsContext other = context;
  other.dry_breakers = {"e"};
  other.sampling.dry_multiplier = 1;
  EXPECT_EQ(*read_samplers_of("{}", other).params.sampling.dry_breakers, tokens_of({"e"}))
      << "a server's own defaults";
}

TEST(SamplerParams, WhatDoesNothingIsSaid) {
  EXPECT_EQ(notes_of(R"({"dry_multiplier":1,"dry_sequence_breakers":["l","never"]})"),
            Texts{R"(ignored: "dry_sequence_breakers" has "never", which is in no token)"});
  EXPECT_EQ(notes_of(R"({"mirostat":2,"top_k":40,"min_p":0,"top_p":1,"typical_p":1})"),
            Texts{R"(ignored: "top_k" does nothing, for mirostat is on)"});
  EXPECT_EQ(
      notes_of(
          R"({"mirostat_mode":1,"top_k":-1,"top_p":0.5,"min_p":0.1,"typical_p":0.9,"xtc_probability":1})")
          .size(),
      4U);
  EXPECT_EQ(notes_of(R"({"mirostat":2,"temperature":0,"top_k":5})"),
            Texts{R"(ignored: "mirostat" does nothing at a temperature of 0)"});
  EXPECT_EQ(notes_of(R"({"xtc_probability":0.5,"temperature":0})").size(), 1U);
  EXPECT_EQ(notes_of(R"({"xtc_probability":0.5,"xtc_threshold":0.6})").size(), 1U);
  EXPECT_EQ(notes_of(R"({"xtc_probability":0.5,"dry_multiplier":1,"top_k":3})"), Texts{});
  EXPECT_EQ(notes_of(R"({"mirostat":0,"top_k":3,"dry_base":1.75,"xtc_threshold":0.1})"), Texts{});
}

TEST(SamplerParams, EveryEndpointTakesThem) {
  const auto model = make_test_model();
  for (const Protocol& protocol : protocols()) {
    Json body = {
        {"dry_multiplier", 0.5}, {"xtc_probability", 0.25}, {"mirostat", 1}, {"max_tokens", 4}};
    const std::string path(protocol.path);
    if (path.ends_with("responses")) {
      body["input"] = "a";
    } else if (path.ends_with("completions") && !path.ends_with("chat/completions")) {
      body["prompt"] = "a";
    } else if (path.ends_with("completion")) {
      body["prompt"] = "a";
    } else {
      body["messages"] = Json::array({{{"role", "user"}, {"content", "a"}}});
    }
    const auto made = protocol.prepare(body, model->model, SystemClock());
    ASSERT_TRUE(made.ok()) << path << " " << made.error().to_string();
    const SamplingParams& sampling = made->requests.front().sampling;
    EXPECT_EQ(sampling.dry_multiplier, 0.5F) << path;
    EXPECT_EQ(sampling.xtc_probability, 0.25F) << path;
    EXPECT_EQ(sampling.mirostat, 1) << path;
    ASSERT_NE(sampling.dry_breakers, nullptr) << path;
    EXPECT_FALSE(sampling.dry_breakers->empty()) << path;
  }
}

}  // namespace
}  // namespace headrace::api
