// The other protocols: what their requests become, and how their answers look.
#include "api/protocol.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/test_scene.h"
#include "api/test_sse.h"

namespace headrace::api {
namespace {

constexpr std::string_view kResponses = "/v1/responses";
constexpr std::string_view kAnthropic = "/v1/messages";
constexpr std::string_view kLlama = "/completion";

class SomeTime final : public Clock {
 public:
  int64_t now_ns() const override { return 0; }
  int64_t unix_seconds() const override { return 1767225600; }
};

/// The field that is at fault, or "".
std::string fault_of(std::string_view path, std::string_view body) {
  const auto model = make_test_model();
  const auto prepared = protocol_at(path)->prepare(parsed(body), model->model, SomeTime());
  if (prepared.ok()) return "";
  EXPECT_EQ(api_error(prepared.error()).status, 400) << prepared.error().to_string();
  return prepared.error().where;
}

std::string prompt_of(const Scene& scene, size_t i = 0) {
  return scene.model->model.tokenizer->decode(scene.request.requests.at(i).prompt, false);
}

Answer answered(const Scene& scene, std::string_view text, const FinishEvent& end) {
  Answer answer = scene.answer();
  for (const TokenId id : scene.byte_ids(std::string(text))) answer.take(0, token(id));
  answer.take(0, end);
  return answer;
}

std::vector<SseEvent> events_of(const Scene& scene, std::string_view text, const FinishEvent& end) {
  const auto format = scene.format();
  Answer answer = scene.answer();
  std::string out;
  format->begin(out);
  for (const TokenId id : scene.byte_ids(std::string(text))) {
    answer.take(0, token(id));
    format->more(answer, out);
  }
  answer.take(0, end);
  format->more(answer, out);
  format->end(answer, out);
  return read_sse(out);
}

/// A body that each endpoint takes.
std::string good_body(std::string_view path) {
  if (path == kResponses) return R"({"input":"a")";
  if (path == kAnthropic) return R"({"max_tokens":4,"messages":[{"role":"user","content":"a"}])";
  if (path == kChat) return R"({"messages":[{"role":"user","content":"a"}])";
  return R"({"prompt":"a")";
}

TEST(Protocols, NoParameterIsLeftOutInSilence) {
  const auto model = make_test_model();
  for (const Protocol& protocol : protocols()) {
    const std::string good = good_body(protocol.path);
    EXPECT_EQ(fault_of(protocol.path, good + "}"), "");
    for (const std::string name : {"model",
                                   "max_completion_tokens",
                                   "max_output_tokens",
                                   "n_predict",
                                   "min_tokens",
                                   "temperature",
                                   "top_p",
                                   "top_k",
                                   "min_p",
                                   "typical_p",
                                   "repetition_penalty",
                                   "presence_penalty",
                                   "frequency_penalty",
                                   "dry_multiplier",
                                   "xtc_probability",
                                   "mirostat",
                                   "logit_bias",
                                   "seed",
                                   "n",
                                   "stop",
                                   "stop_token_ids",
                                   "ignore_eos",
                                   "echo",
                                   "logprobs",
                                   "top_logprobs",
                                   "prompt_logprobs",
                                   "stream",
                                   "stream_options",
                                   "response_format",
                                   "tools",
                                   "tool_choice",
                                   "priority",
                                   "timeout_ms",
                                   "chat_template_kwargs",
                                   "continue_final_message",
                                   "user",
                                   "cache_salt",
                                   "grammar",
                                   "json_schema",
                                   "structured_outputs",
                                   "guided_json",
                                   "guided_regex",
                                   "system",
                                   "input",
                                   "nonsense"}) {
      const std::string body = good + ",\"" + name + R"(":{"a":[1]}})";
      if (good.find("\"" + name + "\"") != std::string::npos) continue;
      const auto made = protocol.prepare(parsed(body), model->model, SomeTime());
      if (!made.ok()) {
        EXPECT_TRUE(made.error().where.starts_with(name))
            << protocol.path << " " << made.error().to_string();
        EXPECT_EQ(api_error(made.error()).status, 400);
        continue;
      }
      EXPECT_TRUE(std::any_of(
          made->warnings.begin(), made->warnings.end(),
          [&](const std::string& warning) { return warning.find(name) != std::string::npos; }))
          << protocol.path << " says nothing of " << name;
    }
  }
}

TEST(Responses, PromptsOfStringsAndItems) {
  const Scene plain(kResponses, R"({"model":"tiny","input":"hi","instructions":"be brief"})");
  EXPECT_EQ(prompt_of(plain),
            "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
            "<|im_start|>assistant\n");
  const Scene items(kResponses,
                    R"({"instructions":"a","input":[{"role":"developer","content":"b"},
                    {"type":"message","role":"user","content":[{"type":"input_text","text":"c"}]},
                    {"type":"reasoning","id":"rs","summary":[]},
                    {"type":"message","id":"msg_1","status":"completed","role":"assistant",
                     "content":[{"type":"output_text","text":"d","annotations":[]}]},
                    {"role":"user","content":"e"}],"max_output_tokens":5,"store":true})");
  EXPECT_EQ(prompt_of(items),
            "<|im_start|>system\na\n\nb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n"
            "<|im_start|>assistant\nd<|im_end|>\n<|im_start|>user\ne<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(items.request.params.stop.max_tokens, 5);
  EXPECT_EQ(items.request.warnings.size(), 3u);
}

TEST(Responses, WhatCannotBeKeptIsRefused) {
  for (const auto& [body, field] : std::vector<std::pair<std::string, std::string>>{
           {R"({})", "input"},
           {R"({"input":[]})", "input"},
           {R"({"input":5})", "input"},
           {R"({"input":"a","previous_response_id":"resp_1"})", "previous_response_id"},
           {R"({"input":"a","conversation":"c"})", "conversation"},
           {R"({"input":"a","prompt":{"id":"p"}})", "prompt"},
           {R"({"input":"a","background":true})", "background"},
           {R"({"input":"a","tools":[{"type":"web_search"}]})", "tools"},
           {R"({"input":"a","tool_choice":"required"})", "tool_choice"},
           {R"({"input":"a","text":{"format":{"type":"json_object"}}})", "text.format"},
           {R"({"input":"a","n":2})", "n"},
           {R"({"input":"a","max_output_tokens":"many"})", "max_output_tokens"},
           {R"({"input":"a","metadata":{"k":1}})", "metadata.k"},
           {R"({"input":"a","truncation":"middle"})", "truncation"},
           {R"({"input":[{"type":"function_call_output","call_id":"1","output":"x"}]})",
            "input[0]"},
           {R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})",
            "input[0].content[0]"},
           {R"({"input":[{"role":"wizard","content":"x"}]})", "input[0].role"}}) {
    EXPECT_EQ(fault_of(kResponses, body), field) << body;
  }
  EXPECT_EQ(fault_of(kResponses, R"({"input":"a","store":true,"tools":[],"tool_choice":"auto",
            "text":{"format":{"type":"text"}},"truncation":"auto","reasoning":{"effort":"low"}})"),
            "");
}

TEST(Responses, ErrorsOfTheEngineHaveTheRequestsNames) {
  const Scene scene(kResponses, R"({"input":"hi","max_output_tokens":9})");
  const auto named = [&](const char* where) {
    return named_for_request(Error{ErrorCode::context_length_exceeded, "x", where, ""},
                             scene.request)
        .where;
  };
  EXPECT_EQ(named("max_tokens"), "max_output_tokens");
  EXPECT_EQ(named("prompt"), "input");
  EXPECT_EQ(named("num_choices"), "n");
}

TEST(Responses, WholeAndStreamed) {
  const Scene scene(kResponses, R"({"input":"hi","max_output_tokens":9,"temperature":0.7,
                    "metadata":{"k":"v"},"include":["message.output_text.logprobs"]})");
  const Json whole = scene.json(answered(scene, "abc", finish(FinishReason::stop)));
  EXPECT_EQ(whole["object"], "response");
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_EQ(whole["temperature"].dump(), "0.7");
  EXPECT_EQ(whole["metadata"].dump(), R"({"k":"v"})");
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], "abc");
  EXPECT_EQ(whole["output"][0]["content"][0]["logprobs"].size(), 3u);
  EXPECT_EQ(whole["usage"]["output_tokens"], 3);
  EXPECT_EQ(whole["usage"]["input_tokens_details"]["cached_tokens"], 4);

  const auto events = events_of(scene, "abc", finish(FinishReason::length));
  std::vector<std::string> names;
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    const Json event = Json::parse(events[i].data);
    EXPECT_EQ(event["type"], events[i].name);
    EXPECT_EQ(event["sequence_number"], i);
    if (names.empty() || names.back() != events[i].name) names.push_back(events[i].name);
    if (events[i].name == "response.output_text.delta") text += event["delta"].get<std::string>();
  }
  EXPECT_EQ(text, "abc");
  EXPECT_EQ(names, (std::vector<std::string>{
                       "response.created", "response.in_progress", "response.output_item.added",
                       "response.content_part.added", "response.output_text.delta",
                       "response.output_text.done", "response.content_part.done",
                       "response.output_item.done", "response.incomplete"}));
  const Json last = Json::parse(events.back().data)["response"];
  EXPECT_EQ(last["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(last["output"][0]["status"], "incomplete");
  EXPECT_EQ(last["output"][0]["content"][0]["text"], "abc");
}

TEST(Anthropic, PromptsOfTurns) {
  const Scene scene(kAnthropic, R"({"model":"tiny","max_tokens":8,
      "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
      "messages":[{"role":"user","content":"a"},{"role":"user","content":[
      {"type":"text","text":"b"}]},{"role":"assistant","content":[
      {"type":"thinking","thinking":"...","signature":"x"},{"type":"text","text":"c"}]}],
      "stop_sequences":["q"],"temperature":0.25,"top_p":0.5,"top_k":7,
      "metadata":{"user_id":"u"},"tool_choice":{"type":"auto"}})");
  EXPECT_EQ(prompt_of(scene),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\na\nb<|im_end|>\n"
            "<|im_start|>assistant\nc");
  const GenerationParams& params = scene.request.params;
  EXPECT_EQ(params.stop_strings, std::vector<std::string>{"q"});
  EXPECT_EQ(params.stop.max_tokens, 8);
  EXPECT_EQ(params.sampling.top_k, 7);
  EXPECT_EQ(params.user, "u");
  EXPECT_TRUE(scene.request.goes_on);
  EXPECT_EQ(scene.request.warnings.size(), 1u);
}

TEST(Anthropic, WhatCannotBeKeptIsRefused) {
  const std::string start = R"({"max_tokens":4,"messages":[{"role":"user","content":"a"}])";
  for (const auto& [more, field] : std::vector<std::pair<std::string, std::string>>{
           {R"(,"tools":[{"name":"t"}])", "tools"},
           {R"(,"tool_choice":{"type":"any"})", "tool_choice"},
           {R"(,"output_format":{"type":"json_schema"})", "output_format"},
           {R"(,"output_config":{"format":{"type":"json_schema"}})", "output_config.format"},
           {R"(,"mcp_servers":[{}])", "mcp_servers"},
           {R"(,"system":5)", "system"},
           {R"(,"stop_sequences":[5])", "stop_sequences[0]"},
           {R"(,"stop_sequences":"a","stop":"b")", "stop_sequences"},
           {R"(,"metadata":{"user_id":5})", "metadata.user_id"}}) {
    EXPECT_EQ(fault_of(kAnthropic, start + more + "}"), field) << more;
  }
  EXPECT_EQ(fault_of(kAnthropic, R"({"messages":[{"role":"user","content":"a"}]})"), "max_tokens");
  EXPECT_EQ(fault_of(kAnthropic, R"({"max_tokens":4})"), "messages");
  EXPECT_EQ(fault_of(kAnthropic, R"({"max_tokens":4,"messages":[{"role":"user","content":[
            {"type":"image","source":{}}]}]})"),
            "messages[0].content[0]");
  EXPECT_EQ(fault_of(kAnthropic, start + "}"), "");
}

TEST(Anthropic, WholeAndStreamed) {
  const Scene scene(kAnthropic, R"({"max_tokens":8,"stop_sequences":["d"],
                    "messages":[{"role":"user","content":"a"}]})");
  const Json whole = scene.json(answered(scene, "abcd", finish(FinishReason::cancelled)));
  EXPECT_EQ(whole["type"], "message");
  EXPECT_EQ(whole["content"].dump(), R"([{"type":"text","text":"abc"}])");
  EXPECT_EQ(whole["stop_reason"], "stop_sequence");
  EXPECT_EQ(whole["stop_sequence"], "d");
  EXPECT_EQ(whole["usage"]["input_tokens"], 3);
  EXPECT_EQ(whole["usage"]["cache_read_input_tokens"], 4);
  EXPECT_EQ(scene.json(answered(scene, "a", finish(FinishReason::stop)))["stop_reason"],
            "end_turn");
  EXPECT_EQ(scene.json(answered(scene, "a", finish(FinishReason::length)))["stop_reason"],
            "max_tokens");

  const auto events = events_of(scene, "abcd", finish(FinishReason::cancelled));
  std::vector<std::string> names;
  std::string text;
  for (const SseEvent& event : events) {
    const Json data = Json::parse(event.data);
    EXPECT_EQ(data["type"], event.name);
    if (names.empty() || names.back() != event.name) names.push_back(event.name);
    if (event.name == "content_block_delta") text += data["delta"]["text"].get<std::string>();
  }
  EXPECT_EQ(text, "abc");
  EXPECT_EQ(names, (std::vector<std::string>{"message_start", "content_block_start", "ping",
                                             "content_block_delta", "content_block_stop",
                                             "message_delta", "message_stop"}));
}

TEST(Anthropic, Errors) {
  const Json error = Json::parse(
      protocol_at(kAnthropic)->error_body(api_error({ErrorCode::overloaded, "too many", "", ""})));
  EXPECT_EQ(error["type"], "error");
  EXPECT_EQ(error["error"]["type"], "rate_limit_error");
  EXPECT_EQ(error["error"]["message"], "too many");
}

TEST(Llama, Requests) {
  const Scene scene(kLlama, R"({"prompt":["a<|im_end|>",[104,105]],"n_predict":3,"n_probs":2,
      "logit_bias":[[5,1.5],[6,false]],"cache_prompt":false,"id_slot":3,"return_tokens":true,
      "repeat_penalty":1.5,"seed":-1})");
  ASSERT_EQ(scene.request.requests.size(), 2u);
  EXPECT_EQ(scene.request.requests[0].prompt.size(), 2u) << "control tokens are taken for that";
  EXPECT_FALSE(scene.request.requests[1].use_prefix_cache);
  EXPECT_EQ(scene.request.params.num_logprobs, 2);
  EXPECT_EQ(scene.request.params.stop.max_tokens, 3);
  const auto& bias = scene.request.params.sampling.logit_bias;
  ASSERT_EQ(bias.size(), 2u);
  EXPECT_EQ(bias[0].second, 1.5F);
  EXPECT_EQ(bias[1].second, -1e9F);
  EXPECT_EQ(scene.request.warnings.size(), 1u);
  EXPECT_EQ(fault_of(kLlama, R"({"prompt":"a","grammar":"root ::= a"})"), "grammar");
  EXPECT_EQ(fault_of(kLlama, R"({"prompt":"a","lora":[{"id":0}]})"), "lora[0].id");
  EXPECT_EQ(fault_of(kLlama, R"({"prompt":"a","logit_bias":[[5]]})"), "logit_bias[0]");
  EXPECT_EQ(fault_of(kLlama, R"({"prompt":"a","logit_bias":[[999,1]]})"), "logit_bias");
  EXPECT_EQ(fault_of(kLlama, R"({"n_predict":1})"), "prompt");
  const Scene mixed(kLlama, R"({"prompt":[104,"i<|im_end|>",33]})");
  ASSERT_EQ(mixed.request.requests.size(), 1u);
  EXPECT_EQ(mixed.request.requests[0].prompt.front(), 104);
  EXPECT_EQ(mixed.request.requests[0].prompt.back(), 33);
  EXPECT_EQ(mixed.request.requests[0].prompt.size(), 4u);
  EXPECT_EQ(fault_of(kLlama, R"({"prompt":[104,"i",999]})"), "prompt[2]");
  EXPECT_EQ(fault_of(kLlama, R"({"prompt":[104,"i",[5]]})"), "prompt[2]");
}

TEST(Llama, WholeAndStreamed) {
  const Scene scene(kLlama, R"({"prompt":"hi","n_probs":1,"return_tokens":true,"stop":["c"]})");
  const Json whole = scene.json(answered(scene, "abcd", finish(FinishReason::cancelled)));
  EXPECT_EQ(whole["content"], "ab");
  EXPECT_EQ(whole["stop_type"], "word");
  EXPECT_EQ(whole["stopping_word"], "c");
  EXPECT_EQ(whole["tokens"].size(), 2u);
  EXPECT_EQ(whole["tokens_predicted"], 3);
  EXPECT_EQ(whole["timings"]["predicted_n"], 3);
  EXPECT_EQ(whole["prompt"], "hi");
  EXPECT_EQ(whole["completion_probabilities"].size(), 2u);
  EXPECT_EQ(whole["generation_settings"]["temperature"].dump(), "0.5");
  std::string text;
  const auto events = events_of(scene, "abcd", finish(FinishReason::cancelled));
  for (const SseEvent& event : events) {
    text += Json::parse(event.data)["content"].get<std::string>();
    EXPECT_EQ(Json::parse(event.data)["stop"], &event == &events.back());
  }
  EXPECT_EQ(text, "ab");
}

}  // namespace
}  // namespace headrace::api
