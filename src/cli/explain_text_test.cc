// What people read of a request, from what a server tells; and what a server that tells nonsense
// gets.
#include "cli/explain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/http/http_get.h"

namespace headrace::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json explained() {
  return json::parse(R"({
    "id": "chatcmpl-1", "request_id": "req-1", "path": "/v1/chat/completions", "model": "small",
    "streamed": true, "end": "complete", "total_ms": 100, "first_token_ms": 50,
    "phases": [{"name": "tokenize", "start_ms": 0, "ms": 25},
               {"name": "format", "start_ms": 0, "ms": 3},
               {"name": "send", "start_ms": 99, "ms": 1}],
    "choices": [{
      "prompt_tokens": 250, "cached_tokens": 200, "completion_tokens": 3, "preemptions": 0,
      "ended": "the model gave the end token 2",
      "phases": [{"name": "queue", "start_ms": 25, "ms": 0},
                 {"name": "prefill", "start_ms": 25, "ms": 25},
                 {"name": "decode", "start_ms": 50, "ms": 50},
                 {"name": "sampling", "start_ms": 25, "ms": 2}],
      "bounds": {"prefill": {"tokens_per_second": 2000, "bound_tokens_per_second": 8000,
                             "fraction_of_bound": 0.25, "bound_kind": "compute"},
                 "decode": {"bound_kind": "bandwidth", "tokens_per_second": 40, "bound_tokens_per_second": 80,
                            "fraction_of_bound": 0.5}},
      "steps": [
        {"start_ms": 25, "ms": 10, "rows": 32, "step_rows": 40, "sequences": 3, "tokens": 0},
        {"start_ms": 35, "ms": 15, "rows": 18, "step_rows": 18, "sequences": 1, "tokens": 1},
        {"start_ms": 50, "ms": 20, "rows": 1, "step_rows": 4, "sequences": 4, "tokens": 1},
        {"start_ms": 70, "ms": 30, "rows": 3, "step_rows": 3, "sequences": 3, "tokens": 3,
         "steps": 3, "pauses_before": 1}]}]})");
}

TEST(ExplainText, TellsWhereTheTimeWent) {
  const std::string text = explain_text(explained());
  EXPECT_THAT(text, HasSubstr("chatcmpl-1 (req-1) /v1/chat/completions\n"));
  EXPECT_THAT(text, HasSubstr("model small, streamed; complete after 100.0 ms, first token after "
                              "50.0 ms"));
  EXPECT_THAT(text, HasSubstr("  tokenize        25.0 ms  |############"
                              "                                    |\n"));
  EXPECT_THAT(text, HasSubstr("  decode          50.0 ms  |                        "
                              "########################|\n"));
  EXPECT_THAT(text, HasSubstr("250 tokens of prompt, 200 of them from the cache; 3 answered"));
  EXPECT_THAT(text, HasSubstr("prompt in 2 chunks:\n    at 25.0 ms: 32 tokens in 10.0 ms, with 2 "
                              "others (40 tokens in the step)\n    at 35.0 ms: 18 tokens in 15.0 "
                              "ms, alone\n    2000.0 tokens/s; arithmetic allows one sequence "
                              "8000.0: 25 % of it\n"));
  EXPECT_THAT(text, HasSubstr("4 steps of decoding: 20.00 ms each (median), 20.00 ms the slowest"));
  EXPECT_THAT(text, HasSubstr("1.8 sequences in a step, 4 at most; alone in 3 steps"));
  EXPECT_THAT(text, HasSubstr("paused 1 time for its reader"));
  EXPECT_THAT(text, HasSubstr("memory allows one sequence 80.0: 50 % of it"));
  EXPECT_THAT(text, HasSubstr("it ended: the model gave the end token 2\n"));
}

TEST(ExplainText, ShowsPromptsWhereThereAreSome) {
  json with = explained();
  with["prompts"] = {{{"ids", {1, 2}}, {"pieces", {"a", "\n"}}, {"text", "a\x1b[0m\n"}}};
  EXPECT_THAT(explain_text(with), HasSubstr("prompt, 2 tokens:\n  a\\x1b[0m\\n\n"));
  EXPECT_THAT(explain_text(explained()), Not(HasSubstr("\nprompt, ")));
}

TEST(ExplainText, TellsAnErrorInOneLine) {
  json failed = explained();
  failed["end"] = "failed";
  failed["error"] = "a step\x1b[31m failed\r\n\tand was given up";
  failed["choices"][0]["ended"] = "it failed: a step\x1b[31m failed\r\n\tand was given up";
  EXPECT_THAT(explain_text(failed),
              HasSubstr("it ended: it failed: a step [31m failed and was given up\n"));
  failed["choices"] = json::array();
  EXPECT_THAT(explain_text(failed),
              HasSubstr("\n  it failed: a step [31m failed and was given up\n"));
  EXPECT_THAT(explain_text(explained()), Not(HasSubstr("failed")));
}

TEST(ExplainText, WithoutBoundsNothingStandsBesideThePhases) {
  json without = explained();
  without["choices"][0]["bounds"] = json::object();
  EXPECT_THAT(explain_text(without), Not(HasSubstr("allows one sequence")));
  EXPECT_THAT(explain_text(without), HasSubstr("4 steps of decoding"));
}

TEST(ExplainText, SurvivesNonsense) {
  for (const char* text :
       {"{}", "[]", "null", R"({"choices": [null, 1, {}]})",
        R"({"id": 3, "streamed": "x", "total_ms": -1, "phases": [1, {"name": 2, "ms": 1e300}]})",
        R"({"choices": [{"steps": [1, {"steps": -5, "rows": 1e300, "tokens": "x"}, {}],
            "bounds": {"decode": 1, "prefill": []}}], "prompts": [{}, {"text": 1}, 7]})"}) {
    EXPECT_FALSE(explain_text(json::parse(text)).empty()) << text;
  }
}

TEST(ExplainText, NumbersNobodyCouldMeanAreKeptInBounds) {
  json wild = explained();
  wild["total_ms"] = 1e-300;
  for (json& each : wild["choices"][0]["phases"]) each["start_ms"] = 1e300;
  EXPECT_THAT(explain_text(wild), HasSubstr("decode"));
}

TEST(HttpGet, TellsWhatIsWrong) {
  EXPECT_EQ(server::http_get("ftp://127.0.0.1/", {}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(server::http_get("http://127.0.0.1:8080/", {.api_key = "a\r\nHost: b"}).error().code,
            ErrorCode::invalid_argument);
  const auto nobody = server::http_get("http://127.0.0.1:1/", {});
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code, ErrorCode::io_error);
  EXPECT_THAT(nobody.error().hint, HasSubstr("headrace serve"));
}

TEST(HttpGet, PathsAreEscaped) {
  EXPECT_EQ(server::path_segment("chatcmpl-aB9_.x"), "chatcmpl-aB9_.x");
  EXPECT_EQ(server::path_segment("../a b?\xff"), "..%2Fa%20b%3F%FF");
}

}  // namespace
}  // namespace headrace::cli
