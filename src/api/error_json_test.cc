#include "api/error_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/json_body.h"

namespace headrace::api {
namespace {

TEST(ApiError, StatusesAndTypes) {
  const auto status = [](ErrorCode code, const char* where = "x") {
    return api_error({code, "m", where, ""}).status;
  };
  EXPECT_EQ(status(ErrorCode::invalid_argument), 400);
  EXPECT_EQ(status(ErrorCode::out_of_range), 400);
  EXPECT_EQ(status(ErrorCode::out_of_range, "body"), 413);
  EXPECT_EQ(status(ErrorCode::unsupported), 400);
  EXPECT_EQ(status(ErrorCode::context_length_exceeded), 400);
  EXPECT_EQ(status(ErrorCode::not_found), 404);
  EXPECT_EQ(status(ErrorCode::overloaded), 429);
  EXPECT_EQ(status(ErrorCode::resource_exhausted), 503);
  EXPECT_EQ(status(ErrorCode::deadline_exceeded), 504);
  EXPECT_EQ(status(ErrorCode::internal), 500);
  EXPECT_EQ(api_error({ErrorCode::overloaded, "m", "", ""}).type, "rate_limit_error");
  EXPECT_EQ(api_error({ErrorCode::deadline_exceeded, "m", "", ""}).code, "deadline_exceeded");
  EXPECT_EQ(api_error({ErrorCode::not_found, "m", "model", ""}).code, "model_not_found");
}

TEST(ApiError, OneShape) {
  const Error error{ErrorCode::context_length_exceeded, "the prompt of 9 tokens is too long",
                    "prompt", "shorten it"};
  const auto json = Json::parse(error_json(api_error(error)));
  EXPECT_EQ(
      json.dump(),
      R"x({"error":{"message":"prompt: the prompt of 9 tokens is too long (shorten it)",)x"
      R"("type":"invalid_request_error","code":"context_length_exceeded","param":"prompt"}})");
  const auto body =
      Json::parse(error_json(api_error({ErrorCode::invalid_argument, "m", "body", ""})));
  EXPECT_TRUE(body["error"]["param"].is_null());
  EXPECT_EQ(body["error"]["message"], "m");
}

TEST(ApiError, NamesNoFileAndNoCode) {
  const ApiError thrown =
      api_error({ErrorCode::internal, "the step failed: a.cc:7: x == y", "", ""});
  EXPECT_EQ(thrown.message, "the step failed");
  const ApiError file =
      api_error({ErrorCode::io_error, "became shorter", "/home/me/model.gguf", ""});
  EXPECT_EQ(file.message.find("/home"), std::string::npos);
  EXPECT_TRUE(file.param.empty());
}

TEST(ApiError, UntrustedBytes) {
  const std::string json = error_json(api_error({ErrorCode::invalid_argument, "\xFF\n\"", "", ""}));
  EXPECT_EQ(Json::parse(json)["error"]["message"], "\xEF\xBF\xBD\n\"");
}

TEST(NamedForRequest, TheEnginesNamesBecomeTheRequests) {
  const auto named = [](const char* where) {
    return named_for_request({ErrorCode::out_of_range, "m", where, ""}, "messages").where;
  };
  EXPECT_EQ(named("prompt"), "messages");
  EXPECT_EQ(named("num_choices"), "n");
  EXPECT_EQ(named("num_prompt_logprobs"), "prompt_logprobs");
  EXPECT_EQ(named("temperature"), "temperature");
}

}  // namespace
}  // namespace headrace::api
