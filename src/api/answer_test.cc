// From the engine's events to the body of an answer.
#include "api/answer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/test_scene.h"

namespace headrace::api {
namespace {

TEST(Answer, ACompletion) {
  Scene scene;
  Answer answer = scene.answer();
  for (const TokenId id : scene.ids("hello he")) EXPECT_FALSE(answer.take(0, token(id)));
  EXPECT_FALSE(answer.take(0, finish(FinishReason::length)));
  const Json json = scene.json(answer);
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["created"], 5);
  EXPECT_EQ(json["model"], "tiny");
  EXPECT_EQ(json["system_fingerprint"], "test-1");
  EXPECT_EQ(json["choices"].dump(),
            R"([{"index":0,"text":"hello he","logprobs":null,"finish_reason":"length",)"
            R"("stop_reason":null}])");
  EXPECT_EQ(json["usage"].dump(), R"({"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,)"
                                  R"("prompt_tokens_details":{"cached_tokens":4}})");
  EXPECT_EQ(json["timings"]["prompt_n"], 3);
  EXPECT_EQ(json["timings"]["cache_n"], 4);
  EXPECT_EQ(json["timings"]["prompt_per_second"], 1500);
  EXPECT_EQ(json["timings"]["predicted_per_second"], 200);
  EXPECT_EQ(json["warnings"], Json::array());
}

TEST(Answer, AChatWithLogprobs) {
  Scene scene;
  scene.path = "/v1/chat/completions";
  scene.request.params.num_logprobs = 1;
  scene.request.warnings = {"careful"};
  Answer answer = scene.answer();
  const TokenId he = scene.ids("he")[0];
  const TokenId face = scene.byte_ids("\xF0")[0];
  const float none = -std::numeric_limits<float>::infinity();
  answer.take(0, token(he, 0, none, {{face, -0.25F}, {he, -3}}));
  answer.take(0, finish(FinishReason::stop, 0, 260));
  const Json json = scene.json(answer);
  EXPECT_EQ(json["object"], "chat.completion");
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["message"].dump(), R"({"role":"assistant","content":"he"})");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["stop_reason"].is_null());
  EXPECT_EQ(choice["logprobs"]["content"].dump(),
            R"([{"token":"he","logprob":-9999.0,"bytes":[104,101],"top_logprobs":[)"
            R"({"token":")"
            "\xEF\xBF\xBD"
            R"(","logprob":-0.25,"bytes":[240]}]}])");
  EXPECT_EQ(json["warnings"][0], "careful");
}

TEST(Answer, ChoicesAndPromptsInOrder) {
  Scene scene;
  scene.request.requests.resize(2);
  scene.request.params.num_choices = 2;
  scene.request.params.stop.stop_token_ids = {9};
  Answer answer = scene.answer();
  const auto letters = scene.byte_ids("abcd");
  answer.take(1, token(letters[3], 1));
  answer.take(0, token(letters[1], 1));
  answer.take(1, token(letters[2], 0));
  answer.take(0, token(letters[0], 0));
  for (const size_t prompt : {1u, 0u}) {
    answer.take(prompt, finish(FinishReason::length, 1));
    answer.take(prompt, finish(FinishReason::stop, 0, 9));
  }
  const Json json = scene.json(answer);
  const std::string texts = "abcd";
  ASSERT_EQ(json["choices"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["text"], std::string(1, texts[i]));
    EXPECT_EQ(json["choices"][i]["finish_reason"], i % 2 == 0 ? "stop" : "length");
  }
  EXPECT_EQ(json["choices"][0]["stop_reason"], 9);
  EXPECT_EQ(json["usage"]["prompt_tokens"], 14);
  EXPECT_EQ(json["usage"]["completion_tokens"], 4);
  EXPECT_EQ(json["usage"]["prompt_tokens_details"]["cached_tokens"], 8);
}

TEST(Answer, AStopStringEndsItsChoiceAlone) {
  Scene scene;
  scene.request.params.num_choices = 2;
  scene.request.params.stop_strings = {"el"};
  scene.request.params.num_logprobs = 0;
  Answer answer = scene.answer();
  std::vector<std::optional<int32_t>> cancelled;
  for (const TokenId id : scene.byte_ids("hello"))
    cancelled.push_back(answer.take(0, token(id, 1)));
  EXPECT_EQ(cancelled[2], 1);
  EXPECT_EQ(std::count(cancelled.begin(), cancelled.end(), std::nullopt), 4);
  for (const TokenId id : scene.byte_ids("he")) answer.take(0, token(id, 0));
  answer.take(0, finish(FinishReason::cancelled, 1));
  answer.take(0, finish(FinishReason::length, 0));
  ASSERT_FALSE(answer.has_failed());
  const Json json = scene.json(answer);
  EXPECT_EQ(json["choices"][0]["text"], "he");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["choices"][1]["text"], "h");
  EXPECT_EQ(json["choices"][1]["finish_reason"], "stop");
  EXPECT_EQ(json["choices"][1]["stop_reason"], "el");
  // The tokens of the stop string would show it.
  EXPECT_EQ(json["choices"][1]["logprobs"]["tokens"].dump(), R"(["h"])");
  EXPECT_EQ(json["choices"][0]["logprobs"]["tokens"].dump(), R"(["h","e"])");
  EXPECT_EQ(json["usage"]["completion_tokens"], 5);
  EXPECT_EQ(answer.num_overrun(), 2);
  // The engine computed three tokens of each, and knows no stop strings.
  EXPECT_EQ(json["timings"]["predicted_n"], 5);
}

TEST(Answer, TokensPastAStopStringAreNotPredicted) {
  Scene scene;
  scene.request.params.stop_strings = {"b"};
  Answer answer = scene.answer();
  for (const TokenId id : scene.byte_ids("abcdef")) answer.take(0, token(id));
  FinishEvent end = finish(FinishReason::cancelled);
  end.stats.completion_tokens = 6;
  answer.take(0, end);
  EXPECT_EQ(answer.times().predicted_n, 2);
  EXPECT_EQ(answer.usage().completion_tokens, 2);
  EXPECT_EQ(answer.num_overrun(), 4);
  EXPECT_EQ(scene.json(answer)["timings"]["predicted_n"], 2);
}

TEST(Answer, StopStringsWaitForMinTokens) {
  Scene scene;
  scene.request.params.stop_strings = {"a"};
  scene.request.params.stop.min_tokens = 2;
  Answer answer = scene.answer();
  for (const TokenId id : scene.byte_ids("aaba")) answer.take(0, token(id));
  answer.take(0, finish(FinishReason::length));
  EXPECT_EQ(answer.choices()[0].text, "aab");
  EXPECT_EQ(answer.choices()[0].stop_string, "a");
}

TEST(Answer, CharactersOverSeveralTokens) {
  Scene scene;
  scene.request.params.num_logprobs = 0;
  const std::string face = "\xF0\x9F\x98\x8A";
  {
    Answer answer = scene.answer();
    for (const TokenId id : scene.byte_ids("a" + face + "b")) answer.take(0, token(id));
    answer.take(0, finish(FinishReason::length));
    const Json json = scene.json(answer);
    EXPECT_EQ(json["choices"][0]["text"], "a" + face + "b");
    EXPECT_EQ(json["choices"][0]["logprobs"]["text_offset"].dump(), "[0,1,1,1,1,2]");
    EXPECT_EQ(json["choices"][0]["logprobs"]["tokens"][1], "bytes:\\xf0");
  }
  Answer cut = scene.answer();
  for (const TokenId id : scene.byte_ids("a" + face.substr(0, 2))) cut.take(0, token(id));
  cut.take(0, finish(FinishReason::length));
  EXPECT_EQ(scene.json(cut)["choices"][0]["text"], "a\xEF\xBF\xBD");
  // A stop string that begins with the character: its first bytes are not shown either.
  scene.request.params.stop_strings = {face + "!"};
  Answer stopped = scene.answer();
  for (const TokenId id : scene.byte_ids("a" + face + "!")) stopped.take(0, token(id));
  stopped.take(0, finish(FinishReason::cancelled));
  const Json json = scene.json(stopped);
  EXPECT_EQ(json["choices"][0]["text"], "a");
  EXPECT_EQ(json["choices"][0]["logprobs"]["tokens"].dump(), R"(["a"])");
}

TEST(Answer, AnyCutOfTextsGivesTheSame) {
  Scene scene;
  scene.request.params.stop_strings = {"hell", "o h", "\xC3\xA9!"};
  const std::string text = "he hel \xC3\xA9 llo hhe o hello";
  Answer whole = scene.answer();
  for (const TokenId id : scene.ids(text)) whole.take(0, token(id));
  Answer bytes = scene.answer();
  for (const TokenId id : scene.byte_ids(text)) bytes.take(0, token(id));
  for (Answer* answer : {&whole, &bytes}) answer->take(0, finish(FinishReason::length));
  EXPECT_EQ(whole.choices()[0].text, "he hel \xC3\xA9 ll");
  EXPECT_EQ(bytes.choices()[0].text, whole.choices()[0].text);
}

TEST(Answer, EchoAndThePromptsLogprobs) {
  Scene scene;
  scene.request.params.num_logprobs = 1;
  scene.request.params.num_prompt_logprobs = 2;
  scene.request.echoes = {"hi\xC3\xA9"};
  scene.request.goes_on = true;
  scene.request.requests[0].prompt = scene.byte_ids("hi\xC3\xA9");
  scene.request.requests[0].num_prompt_logprobs = 2;
  const auto prompt = scene.request.requests[0].prompt;
  Answer answer = scene.answer();
  PromptLogprobsEvent first{.first_position = 1,
                            .tokens = {{{prompt[1], -1.5F}, {{5, -0.5F}, {6, -1}}}}};
  PromptLogprobsEvent rest{.first_position = 2,
                           .tokens = {{{prompt[2], -0.25F}, {{prompt[2], -0.25F}, {6, -1}}},
                                      {{prompt[3], -2}, {{7, -0.125F}, {8, -1}}}}};
  answer.take(0, first);
  answer.take(0, rest);
  for (const TokenId id : scene.byte_ids("!")) answer.take(0, token(id, 0, -4, {{9, -0.75F}}));
  answer.take(0, finish(FinishReason::length));
  const Json choice = scene.json(answer)["choices"][0];
  EXPECT_EQ(choice["text"], "hi\xC3\xA9!");
  const Json& logprobs = choice["logprobs"];
  EXPECT_EQ(logprobs["tokens"].dump(), R"(["h","i","bytes:\\xc3","bytes:\\xa9","!"])");
  EXPECT_EQ(logprobs["token_logprobs"].dump(), "[null,-1.5,-0.25,-2.0,-4.0]");
  EXPECT_EQ(logprobs["text_offset"].dump(), "[0,1,2,2,3]");
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  EXPECT_EQ(logprobs["top_logprobs"][2].dump(), R"({"bytes:\\xc3":-0.25})");
  EXPECT_EQ(logprobs["top_logprobs"][4].size(), 2u);
  const Json& known = choice["prompt_logprobs"];
  ASSERT_EQ(known.size(), 4u);
  EXPECT_TRUE(known[0].is_null());
  EXPECT_EQ(known[1][std::to_string(prompt[1])]["logprob"], -1.5);
  EXPECT_TRUE(known[1][std::to_string(prompt[1])]["rank"].is_null());
  EXPECT_EQ(known[2][std::to_string(prompt[2])]["rank"], 1);
  EXPECT_EQ(known[2]["6"]["rank"], 2);
}

TEST(Answer, FailsAsAWhole) {
  Scene scene;
  Answer broken = scene.answer();
  broken.take(0, token(scene.ids("he")[0]));
  broken.take(0, ErrorEvent{{ErrorCode::deadline_exceeded, "too late", "", ""}});
  ASSERT_TRUE(broken.has_failed());
  EXPECT_EQ(broken.error().code, ErrorCode::deadline_exceeded);
  Answer cancelled = scene.answer();
  cancelled.take(0, finish(FinishReason::cancelled));
  EXPECT_EQ(cancelled.error().code, ErrorCode::cancelled);
}

TEST(Answer, NoNaNInJson) {
  Scene scene;
  scene.request.params.num_logprobs = 1;
  scene.request.tokenize_ms = std::nan("");
  Answer answer = scene.answer();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  answer.take(0, token(5, 0, nan, {{6, nan}}));
  FinishEvent end = finish(FinishReason::length);
  end.stats.decode_ms = std::numeric_limits<double>::infinity();
  answer.take(0, end);
  const std::string text = scene.whole(answer);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);
  EXPECT_EQ(Json::parse(text)["timings"]["tokenize_ms"], 0);
}

}  // namespace
}  // namespace headrace::api
