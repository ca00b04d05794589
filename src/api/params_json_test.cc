#include "api/params_json.h"

#include <gtest/gtest.h>

#include "api/test_model.h"

namespace headrace::api {
namespace {

Result<GenerationParams> read(std::string_view text,
                              const ParamsContext& context = test_context()) {
  const Json body = parsed(text);
  Fields fields(body);
  GenerationParams out;
  read_generation_params(fields, context, out);
  HEADRACE_TRY(fields.status());
  HEADRACE_TRY(check_params(out, context.vocab_size));
  return out;
}

Error fault(std::string_view text, const ParamsContext& context = test_context()) {
  const auto out = read(text, context);
  EXPECT_FALSE(out.ok()) << text;
  return out.ok() ? Error{} : out.error();
}

TEST(GenerationParams, AllOfThem) {
  const auto out = read(R"({"model":"m","temperature":0,"top_p":0.9,"top_k":-1,"min_p":0.1,
    "typical_p":0.8,"repetition_penalty":1.1,"presence_penalty":-0.5,"frequency_penalty":0.25,
    "repeat_last_n":64,"logit_bias":{"5":-100,"7":1.5},"seed":42,"n":3,"max_tokens":9,
    "min_tokens":2,"stop":["a","b c"],"stop_token_ids":[1,265],"ignore_eos":true,
    "prompt_logprobs":2,"priority":-3,"timeout_ms":1000,"stream":true,
    "stream_options":{"include_usage":true},"user":"u","cache_salt":"s",
    "response_format":{"type":"text"},"tools":[],"tool_choice":"auto","parallel_tool_calls":true,
    "dry_multiplier":0.8,"dry_base":2,"dry_allowed_length":3,"dry_penalty_last_n":100,
    "dry_sequence_breakers":["x","yz"],"xtc_probability":0.5,"xtc_threshold":0.2,"mirostat":2,
    "mirostat_tau":4.5,"mirostat_eta":0.25,"dynatemp_range":0,"top_n_sigma":-1})");
  ASSERT_TRUE(out.ok()) << out.error().to_string();
  const SamplingParams& sampling = out->sampling;
  EXPECT_EQ(out->model, "m");
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.top_p, 0.9F);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.min_p, 0.1F);
  EXPECT_EQ(sampling.typical_p, 0.8F);
  EXPECT_EQ(sampling.repetition_penalty, 1.1F);
  EXPECT_EQ(sampling.presence_penalty, -0.5F);
  EXPECT_EQ(sampling.frequency_penalty, 0.25F);
  EXPECT_EQ(sampling.penalty_last_n, 64);
  EXPECT_EQ(sampling.logit_bias, (std::vector<std::pair<TokenId, float>>{{5, -100.F}, {7, 1.5F}}));
  EXPECT_EQ(sampling.dry_multiplier, 0.8F);
  EXPECT_EQ(sampling.dry_base, 2);
  EXPECT_EQ(sampling.dry_allowed_length, 3);
  EXPECT_EQ(sampling.dry_penalty_last_n, 100);
  EXPECT_EQ(out->dry_breakers, (std::vector<std::string>{"x", "yz"}));
  EXPECT_EQ(sampling.xtc_probability, 0.5F);
  EXPECT_EQ(sampling.xtc_threshold, 0.2F);
  EXPECT_EQ(sampling.mirostat, 2);
  EXPECT_EQ(sampling.mirostat_tau, 4.5F);
  EXPECT_EQ(sampling.mirostat_eta, 0.25F);
  EXPECT_EQ(sampling.seed, 42u);
  EXPECT_EQ(out->num_choices, 3);
  EXPECT_EQ(out->stop.max_tokens, 9);
  EXPECT_EQ(out->stop.min_tokens, 2);
  EXPECT_EQ(out->stop_strings, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(out->stop.stop_token_ids, (std::vector<TokenId>{1, 265}));
  EXPECT_TRUE(out->stop.ignore_eos);
  EXPECT_EQ(out->num_prompt_logprobs, 2);
  EXPECT_EQ(out->priority, -3);
  EXPECT_EQ(out->timeout_ms, 1000);
  EXPECT_TRUE(out->is_streamed && out->include_usage);
  EXPECT_EQ(out->user, "u");
  EXPECT_EQ(out->cache_salt, "s");
}

TEST(GenerationParams, WhatIsNotSaidStaysAsItWas) {
  ParamsContext context = test_context();
  context.stop.max_tokens = 77;
  context.stop.ignore_eos = true;
  const auto out = read(R"({"temperature":null,"max_tokens":null,"stop":null})", context);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->sampling.temperature, 0.5F);
  EXPECT_EQ(out->stop.max_tokens, 77);
  EXPECT_TRUE(out->stop.ignore_eos);
  EXPECT_EQ(out->num_choices, 1);
}

TEST(GenerationParams, FaultsNameTheField) {
  const std::pair<const char*, const char*> kFaults[] = {
      {R"({"temperature":-0.1})", "temperature"},
      {R"({"temperature":"hot"})", "temperature"},
      {R"({"temperature":1e40})", "temperature"},
      {R"({"top_p":0})", "top_p"},
      {R"({"top_p":1.5})", "top_p"},
      {R"({"top_k":-2})", "top_k"},
      {R"({"top_k":1.5})", "top_k"},
      {R"({"min_p":2})", "min_p"},
      {R"({"repetition_penalty":0})", "repetition_penalty"},
      {R"({"presence_penalty":[]})", "presence_penalty"},
      {R"({"logit_bias":[]})", "logit_bias"},
      {R"({"logit_bias":{"266":1}})", "logit_bias"},
      {R"({"logit_bias":{"-1":1}})", "logit_bias"},
      {R"({"logit_bias":{"05":1}})", "logit_bias"},
      {R"({"logit_bias":{"x":1}})", "logit_bias"},
      {R"({"logit_bias":{"5":"much"}})", "logit_bias.5"},
      {R"({"seed":1.5})", "seed"},
      {R"({"n":0})", "n"},
      {R"({"n":129})", "n"},
      {R"({"max_tokens":-2})", "max_tokens"},
      {R"({"max_tokens":5,"max_completion_tokens":6})", "max_completion_tokens"},
      {R"({"max_tokens":5,"min_tokens":6})", "min_tokens"},
      {R"({"stop":5})", "stop"},
      {R"({"stop":""})", "stop"},
      {R"({"stop":["a",5]})", "stop[1]"},
      {R"({"stop_token_ids":[0,266]})", "stop_token_ids[1]"},
      {R"({"stop_token_ids":"0"})", "stop_token_ids"},
      {R"({"ignore_eos":1})", "ignore_eos"},
      {R"({"prompt_logprobs":21})", "prompt_logprobs"},
      {R"({"priority":9})", "priority"},
      {R"({"timeout_ms":-1})", "timeout_ms"},
      {R"({"stream":"yes"})", "stream"},
      {R"({"stream_options":{"include_usage":true}})", "stream_options"},
      {R"({"stream":true,"stream_options":{"include_usage":1}})", "stream_options.include_usage"},
      {R"({"user":5})", "user"},
  };
  for (const auto& [text, where] : kFaults) {
    const Error error = fault(text);
    EXPECT_EQ(error.where, where) << text;
    EXPECT_FALSE(error.message.empty());
  }
  EXPECT_NE(fault(R"({"logit_bias":{"191222":-100}})").message.find("\"191222\""),
            std::string::npos);
}

TEST(GenerationParams, OneSettingUnderSeveralNames) {
  EXPECT_EQ(read(R"({"max_completion_tokens":6})")->stop.max_tokens, 6);
  EXPECT_EQ(read(R"({"n_predict":-1,"max_tokens":-1})")->stop.max_tokens, -1);
  EXPECT_EQ(read(R"({"repeat_penalty":1.5})")->sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(read(R"({"seed":-1})")->sampling.seed, std::nullopt);
  EXPECT_EQ(read(R"({"seed":-2})")->sampling.seed, UINT64_MAX - 1);
  EXPECT_EQ(read(R"({"seed":18446744073709551615})")->sampling.seed, UINT64_MAX);
  EXPECT_EQ(read(R"({"max_tokens":5.0})")->stop.max_tokens, 5);
}

TEST(GenerationParams, ConstraintsFailClosed) {
  for (const char* text :
       {R"({"response_format":{"type":"json_object"}})",
        R"({"response_format":{"type":"json_schema","json_schema":{}}})", R"({"grammar":"root"})",
        R"({"json_schema":{}})", R"({"structured_outputs":{"regex":"a"}})", R"({"guided_json":{}})",
        R"({"guided_choice":["a"]})", R"({"tool_choice":"required"})",
        R"({"tool_choice":{"type":"function"}})", R"({"tools":[{"type":"function"}]})",
        R"({"functions":[{}]})", R"({"dynatemp_range":0.5})", R"({"top_n_sigma":1})",
        R"({"use_beam_search":true})", R"({"allowed_token_ids":[5]})", R"({"bad_words":["a"]})",
        R"({"bad_words":"a"})", R"({"allowed_token_ids":{}})"}) {
    const Error error = fault(text);
    EXPECT_EQ(error.code, ErrorCode::unsupported) << text;
    EXPECT_NE(std::string(text).find(error.where), std::string::npos) << error.where;
    EXPECT_NE(error.message.find("not built in"), std::string::npos) << error.message;
  }
  EXPECT_EQ(fault(R"({"response_format":{}})").where, "response_format.type");
  EXPECT_EQ(fault(R"({"response_format":{"type":"xml"}})").where, "response_format.type");
  EXPECT_EQ(fault(R"({"response_format":"text"})").where, "response_format");
  EXPECT_EQ(fault(R"({"tool_choice":"perhaps"})").where, "tool_choice");
  EXPECT_TRUE(read(R"({"grammar":"","guided_json":null})").ok());
  EXPECT_TRUE(read(R"({"allowed_token_ids":null,"bad_words":[]})").ok());
  EXPECT_TRUE(read(R"({"allowed_token_ids":[],"bad_words":null})").ok());
}

TEST(GenerationParams, NoStreamWhereThereIsNone) {
  ParamsContext context = test_context();
  context.may_stream = false;
  EXPECT_EQ(fault(R"({"stream":true})", context).where, "stream");
  EXPECT_TRUE(read(R"({"stream":false})", context).ok());
}

TEST(GenerationParams, ALargeMaxTokensIsForTheEngineToRefuse) {
  EXPECT_EQ(read(R"({"max_tokens":1099511627776})")->stop.max_tokens, int64_t{1} << 40);
  for (const char* const past : {"9223372036854775808", "1e30"}) {
    EXPECT_EQ(fault("{\"max_tokens\":" + std::string(past) + "}")
                  .message.find("expected a whole number from -1 to 9223372036854775807, found "),
              0u)
        << past;
  }
  EXPECT_EQ(fault(R"({"max_tokens":2.5})").message,
            "expected a whole number of at least -1, found 2.5");
  EXPECT_TRUE(read(R"({"n_predict":-1})")->has_max_tokens);
  EXPECT_FALSE(read(R"({"max_tokens":null})")->has_max_tokens);
  EXPECT_EQ(fault(R"({"min_tokens":1099511627776})").message,
            "expected a whole number from 0 to 2147483647, found 1099511627776");
}

TEST(GenerationParams, ManyStopIdsAndStrings) {
  ParamsContext context = test_context();
  context.vocab_size = 50'000;
  std::string ids = "0";
  for (int i = 1; i < 1'024; ++i) ids += "," + std::to_string(i);
  EXPECT_EQ(read("{\"stop_token_ids\":[" + ids + "]}", context)->stop.stop_token_ids.size(),
            1'024u);
  for (int i = 1'024; i < 10'000; ++i) ids += "," + std::to_string(i);
  EXPECT_EQ(fault("{\"stop_token_ids\":[" + ids + "]}", context).message,
            "at most 1024 ids are allowed, found 10000");
  std::string stops = "\"0\"";
  for (int i = 1; i < 257; ++i) stops += ",\"" + std::to_string(i) + "\"";
  EXPECT_NE(fault("{\"stop\":[" + stops + "]}").message.find("at most 256"), std::string::npos);
  EXPECT_NE(fault("{\"stop\":\"" + std::string(5000, 'x') + "\"}").message.find("4096"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::api
