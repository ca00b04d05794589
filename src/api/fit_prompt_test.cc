// Prompts that a request wants cut, over its endpoints.
#include "api/fit_prompt.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "api/protocol.h"
#include "api/test_scene.h"

namespace headrace::api {
namespace {

class StillClock final : public Clock {
 public:
  int64_t now_ns() const override { return 0; }
  int64_t unix_seconds() const override { return 1767225600; }
};

struct Cut {
  std::unique_ptr<TestModel> model = make_test_model();

  explicit Cut(int64_t max_context = 0, int64_t longest_token_bytes = 0) {
    model->model.max_context = max_context;
    model->model.longest_token_bytes = longest_token_bytes;
    model->model.stop.max_tokens = 1024;
  }
  Result<PreparedRequest> prepare(std::string_view path, const Json& body) const {
    return protocol_at(path)->prepare(body, model->model, StillClock());
  }
  std::string text(const PreparedRequest& request) const {
    return model->model.tokenizer->decode(request.requests[0].prompt, false);
  }
};

bool has_warning(const PreparedRequest& request, const std::string& part) {
  for (const std::string& each : request.warnings) {
    if (each.find(part) != each.npos) return true;
  }
  return false;
}

Json turn(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

/// system, then users' and assistants' turns "q0", "a0", "q1", ..., the last a user's.
Json conversation(int num_turns) {
  Json out = Json::array({turn("system", "SYS")});
  for (int i = 0; i < num_turns; ++i) {
    out.push_back(turn("user", "q" + std::to_string(i)));
    if (i + 1 < num_turns) out.push_back(turn("assistant", "a" + std::to_string(i)));
  }
  return out;
}

TEST(FitPrompt, TheLastTokensOfACompletion) {
  const Cut cut;
  const auto kept = cut.prepare(
      kCompletions, {{"prompt", "abcdefgh"}, {"truncate_prompt_tokens", 3}, {"echo", true}});
  ASSERT_TRUE(kept.ok()) << kept.error().to_string();
  EXPECT_EQ(cut.text(*kept), "fgh");
  EXPECT_EQ(kept->echoes[0], "fgh");
  EXPECT_TRUE(has_warning(*kept, "truncate_prompt_tokens: the last 3 tokens were kept of 8"));
  const auto whole = cut.prepare(kCompletions, {{"prompt", "abc"}, {"truncate_prompt_tokens", 3}});
  EXPECT_EQ(cut.text(*whole), "abc");
  EXPECT_TRUE(whole->warnings.empty()) << whole->warnings[0];
  const auto ids = cut.prepare(
      kCompletions, {{"prompt", {{65, 66}, {65, 66, 67, 68}}}, {"truncate_prompt_tokens", 3}});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->requests[0].prompt.size(), 2U);
  EXPECT_EQ(ids->requests[1].prompt, (std::vector<TokenId>{66, 67, 68}));
  EXPECT_TRUE(has_warning(*ids, "prompt[1]: the last 3 tokens were kept of 4"));
  EXPECT_FALSE(has_warning(*ids, "prompt[0]"));
}

TEST(FitPrompt, OnlyNumbersThatMeanSomething) {
  const Cut cut;
  for (const Json& value : {Json(0), Json(-2), Json("3"), Json(1.5)}) {
    const auto refused =
        cut.prepare(kCompletions, {{"prompt", "abc"}, {"truncate_prompt_tokens", value}});
    ASSERT_FALSE(refused.ok()) << value;
    EXPECT_EQ(refused.error().where, "truncate_prompt_tokens");
  }
}

TEST(FitPrompt, AsManyAsFitBesideTheAnswer) {
  const Cut cut(40);
  const std::string text(100, 'x');
  const Json asked = {{"prompt", text}, {"truncate_prompt_tokens", -1}, {"max_tokens", 8}};
  EXPECT_EQ(cut.prepare(kCompletions, asked)->requests[0].prompt.size(), 32U);
  const auto by_default =
      cut.prepare(kCompletions, {{"prompt", text}, {"truncate_prompt_tokens", -1}});
  EXPECT_EQ(by_default->requests[0].prompt.size(), 30U);
  EXPECT_EQ(by_default->requests[0].stop.max_tokens, 10);
  EXPECT_TRUE(has_warning(*by_default, "the last 30 tokens were kept of 100"));
  // What no prompt leaves room for is refused by the engine, as without.
  const Json all = {{"prompt", text}, {"truncate_prompt_tokens", -1}, {"max_tokens", 40}};
  EXPECT_EQ(cut.prepare(kCompletions, all)->requests[0].prompt.size(), 100U);
  const auto llama = cut.prepare("/completion", asked);
  ASSERT_TRUE(llama.ok());
  EXPECT_EQ(llama->requests[0].prompt.size(), 32U);
  EXPECT_TRUE(has_warning(*llama, "the last 32 tokens were kept of 100"));
}

TEST(FitPrompt, TextTooLongForItsBytesIsCutBeforeItIsTokenised) {
  const Cut cut(40, 4);
  const std::string text = std::string(100'000, 'x') + "the end";
  const auto refused = cut.prepare(kCompletions, {{"prompt", text}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::context_length_exceeded);
  EXPECT_LT(end_of_text(cut.model->model, text, 10).size(), 200U);
  const auto kept = cut.prepare(kCompletions, {{"prompt", text}, {"truncate_prompt_tokens", 10}});
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(cut.text(*kept), "xxxxthe end");
  EXPECT_TRUE(has_warning(*kept, "the last 10 tokens were kept of a prompt of 100007 bytes"));
  // No character is cut in two.
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\xE2\x82\xAC";
  EXPECT_EQ(end_of_text(cut.model->model, wide, 10).substr(0, 3), "\xE2\x82\xAC");
  EXPECT_EQ(end_of_text(cut.model->model, "short", 10), "short");
}

TEST(FitPrompt, ChatsLoseTheirEarliestTurnsAndKeepTheSystemMessage) {
  const Cut cut;
  const auto whole = cut.prepare(kChat, {{"messages", conversation(20)}});
  const auto size = static_cast<int64_t>(whole->requests[0].prompt.size());
  for (const int64_t most : {size - 1, size / 2, size / 3}) {
    const auto kept =
        cut.prepare(kChat, {{"messages", conversation(20)}, {"truncate_prompt_tokens", most}});
    ASSERT_TRUE(kept.ok()) << kept.error().to_string();
    const auto num_kept = static_cast<int64_t>(kept->requests[0].prompt.size());
    EXPECT_LE(num_kept, most);
    EXPECT_GT(num_kept, most - 60);  // one turn more did not fit
    const std::string text = cut.text(*kept);
    EXPECT_NE(text.find("<|im_start|>system\nSYS<|im_end|>\n<|im_start|>user\nq"), text.npos);
    EXPECT_EQ(text.find("q0<"), text.npos);
    EXPECT_NE(text.find("q19<|im_end|>\n<|im_start|>assistant\n"), text.npos);
    EXPECT_TRUE(has_warning(*kept, "of 40 messages were left out"));
    EXPECT_TRUE(
        has_warning(*kept, std::to_string(num_kept) + " tokens, not " + std::to_string(size)));
  }
  const auto untouched =
      cut.prepare(kChat, {{"messages", conversation(20)}, {"truncate_prompt_tokens", size}});
  EXPECT_EQ(untouched->requests[0].prompt, whole->requests[0].prompt);
  EXPECT_TRUE(untouched->warnings.empty());
}

TEST(FitPrompt, AChatWhoseLastMessageIsTooLongIsRefused) {
  const Cut cut;
  Json messages = conversation(5);
  messages.back()["content"] = std::string(300, 'x');
  const auto refused =
      cut.prepare(kChat, {{"messages", messages}, {"truncate_prompt_tokens", 100}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::context_length_exceeded);
  EXPECT_EQ(refused.error().where, "messages");
  EXPECT_NE(refused.error().message.find("100"), std::string::npos);
  EXPECT_NE(refused.error().message.find("tokens, and"), std::string::npos);
  const Json alone = Json::array({turn("user", std::string(300, 'x'))});
  EXPECT_FALSE(cut.prepare(kChat, {{"messages", alone}, {"truncate_prompt_tokens", 100}}).ok());
}

TEST(FitPrompt, ResponsesAndMessages) {
  const Cut cut(200);
  Json input = Json::array();
  for (int i = 0; i < 30; ++i) input.push_back(turn(i % 2 == 0 ? "user" : "assistant", "turn"));
  input.push_back(turn("user", "LAST"));
  Json body = {{"input", input}, {"instructions", "SYS"}, {"max_output_tokens", 50}};
  const auto whole = cut.prepare("/v1/responses", body);
  ASSERT_TRUE(whole.ok());
  EXPECT_GT(whole->requests[0].prompt.size(), 200U);  // the engine refuses it
  body["truncation"] = "disabled";
  EXPECT_EQ(cut.prepare("/v1/responses", body)->requests[0].prompt, whole->requests[0].prompt);
  body["truncation"] = "auto";
  const auto kept = cut.prepare("/v1/responses", body);
  ASSERT_TRUE(kept.ok()) << kept.error().to_string();
  EXPECT_LE(kept->requests[0].prompt.size(), 150U);
  EXPECT_TRUE(has_warning(*kept, "truncation: "));
  EXPECT_NE(cut.text(*kept).find("SYS"), std::string::npos);
  EXPECT_NE(cut.text(*kept).find("LAST"), std::string::npos);
  const auto messages = cut.prepare(
      "/v1/messages",
      {{"messages", input}, {"system", "SYS"}, {"max_tokens", 50}, {"truncate_prompt_tokens", -1}});
  ASSERT_TRUE(messages.ok());
  EXPECT_EQ(messages->requests[0].prompt, kept->requests[0].prompt);
  EXPECT_TRUE(has_warning(*messages, "truncate_prompt_tokens: "));
}

TEST(FitPrompt, AllowALighterModel) {
  const Cut cut;
  const Json body = {{"prompt", "a"}, {"allow_lighter_model", true}};
  const auto none = cut.prepare(kCompletions, body);
  EXPECT_TRUE(none->requests[0].may_use_lighter_model);
  EXPECT_TRUE(has_warning(*none, "allow_lighter_model: \"tiny\" has no lighter model"));
  cut.model->model.lighter_name = "tinier";
  EXPECT_TRUE(cut.prepare(kCompletions, body)->warnings.empty());
  EXPECT_FALSE(cut.prepare(kCompletions, {{"prompt", "a"}})->requests[0].may_use_lighter_model);
}

}  // namespace
}  // namespace headrace::api
