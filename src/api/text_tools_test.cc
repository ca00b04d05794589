// Text to tokens and back, over JSON.
#include "api/text_tools.h"

#include <gtest/gtest.h>

#include "api/test_model.h"

namespace headrace::api {
namespace {

class NoTime final : public Clock {
 public:
  int64_t now_ns() const override { return 0; }
  int64_t unix_seconds() const override { return 0; }
};

struct Tools {
  std::unique_ptr<TestModel> model = make_test_model();

  Json tokenized(std::string_view body) const {
    return good(tokenize(parsed(body), model->model, NoTime()));
  }
  static Json good(const Result<Json>& result) {
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().to_string());
    return result.ok() ? *result : Json();
  }
  static Json good(const Result<std::string>& result) {
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().to_string());
    return result.ok() ? parsed(*result) : Json();
  }
  template <class T>
  static std::string where(const Result<T>& result) {
    EXPECT_FALSE(result.ok());
    return result.ok() ? "no error" : result.error().where;
  }
};

TEST(Tokenize, AsLlamaServerAndVllm) {
  const Tools tools;
  const Json plain = tools.tokenized(R"({"content":"hello"})");
  EXPECT_EQ(plain["count"], plain["tokens"].size());
  EXPECT_EQ(plain["warnings"], Json::array());
  const Json pieces = tools.tokenized("{\"content\":\"h\xC3\xA9\",\"with_pieces\":true}");
  EXPECT_EQ(pieces["tokens"][0]["piece"], "h");
  EXPECT_EQ(pieces["tokens"][1]["piece"].dump(), "[195]");
  EXPECT_EQ(tools.tokenized(R"({"content":"<|im_end|>"})")["count"], 1);
  EXPECT_GT(tools.tokenized(R"({"content":"<|im_end|>","parse_special":false})")["count"], 1);
  const Json strings = tools.tokenized(R"({"prompt":"hi","return_token_strs":true,"x":1})");
  EXPECT_EQ(strings["token_strs"].size(), strings["tokens"].size());
  EXPECT_EQ(strings["warnings"].size(), 1u);
  const Json chat = tools.tokenized(R"({"messages":[{"role":"user","content":"hi<|im_end|>"}]})");
  EXPECT_GT(chat["count"].get<int>(), 8) << "what a user types is text";
}

TEST(Tokenize, ItsTextTakesNoMoreThanItIsLong) {
  const Tools tools;
  std::string digits(200'000, '7');
  const Json body = {{"content", digits}, {"with_pieces", true}, {"return_token_strs", true}};
  const auto text = tokenize(body, tools.model->model, NoTime());
  ASSERT_TRUE(text.ok());
  EXPECT_GT(text->size(), 5 * digits.size());
  EXPECT_LT(text->capacity(), text->size() + 64) << "it was measured before it was written";
  const Json read = Json::parse(*text);
  EXPECT_EQ(read["tokens"].size(), read["token_strs"].size());
  EXPECT_EQ(read["tokens"][0].size(), 2u);
}

TEST(Tokenize, Faults) {
  const Tools tools;
  const auto fault = [&](std::string_view body) {
    return Tools::where(tokenize(parsed(body), tools.model->model, NoTime()));
  };
  EXPECT_EQ(fault("[]"), "body");
  EXPECT_EQ(fault("{}"), "content");
  EXPECT_EQ(fault(R"({"content":5})"), "content");
  EXPECT_EQ(fault(R"({"prompt":["a"]})"), "prompt");
  EXPECT_EQ(fault(R"({"content":"a","add_special":"yes"})"), "add_special");
  EXPECT_EQ(fault(R"({"content":"a","model":"other"})"), "model");
  EXPECT_EQ(fault(R"({"messages":[]})"), "messages");
}

TEST(Detokenize, GivesTheTextBack) {
  const Tools tools;
  const Json ids = tools.tokenized("{\"content\":\"hello \xC3\xA9\"}")["tokens"];
  const Json back = Tools::good(detokenize(Json{{"tokens", ids}}, tools.model->model));
  EXPECT_EQ(back["content"], "hello \xC3\xA9");
  EXPECT_EQ(back["prompt"], "hello \xC3\xA9");
  EXPECT_EQ(Tools::where(detokenize(parsed("{}"), tools.model->model)), "tokens");
  EXPECT_EQ(Tools::where(detokenize(parsed(R"({"tokens":[1,266]})"), tools.model->model)),
            "tokens[1]");
}

TEST(ApplyTemplate, GivesTheText) {
  const Tools tools;
  const Json made = Tools::good(apply_template(
      parsed(R"({"messages":[{"role":"user","content":"hi"}]})"), tools.model->model, NoTime()));
  EXPECT_EQ(made["prompt"], "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(Tools::where(apply_template(parsed("{}"), tools.model->model, NoTime())), "messages");
  tools.model->model.chat_template = nullptr;
  EXPECT_EQ(Tools::where(apply_template(parsed(R"({"messages":[{"role":"user","content":"a"}]})"),
                                        tools.model->model, NoTime())),
            "messages");
}

TEST(CountTokens, CountsWhatAMessageWouldSend) {
  const Tools tools;
  const Json body = parsed(R"({"model":"tiny","system":"s",
                           "messages":[{"role":"user","content":"hi"}]})");
  const Json counted = Tools::good(count_tokens(body, tools.model->model, NoTime()));
  const Json same = tools.tokenized(R"({"messages":[{"role":"system","content":"s"},
                                    {"role":"user","content":"hi"}]})");
  EXPECT_EQ(counted["input_tokens"], same["count"]);
  EXPECT_EQ(Tools::where(count_tokens(parsed("{}"), tools.model->model, NoTime())), "messages");
}

}  // namespace
}  // namespace headrace::api
