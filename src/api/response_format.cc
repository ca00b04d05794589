// See response_format.h.
#include "api/response_format.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/logprobs_json.h"
#include "api/response_json.h"
#include "api/sse.h"
#include "base/check.h"

namespace headrace::api {
namespace {

class ResponseFormat final : public ReplyFormat {
 public:
  ResponseFormat(ResponseHead head, std::shared_ptr<const PreparedRequest> request,
                 std::shared_ptr<const ServedModel> model)
      : head_(std::move(head)),
        item_id_("msg_" + head_.id.substr(head_.id.find('_') + 1)),
        request_(std::move(request)),
        model_(std::move(model)) {}

  std::string whole(const Answer& answer) override {
    HEADRACE_CHECK(!answer.has_failed());
    return dumped(finished(answer));
  }

  void begin(std::string& out) override {
    for (const char* const name : {"response.created", "response.in_progress"}) {
      append(name, {{"response", response("in_progress", Json::array())}}, out);
    }
    append("response.output_item.added",
           {{"output_index", 0}, {"item", item("in_progress", Json::array())}}, out);
    append(
        "response.content_part.added",
        {{"item_id", item_id_}, {"output_index", 0}, {"content_index", 0}, {"part", part("", {})}},
        out);
  }

  void more(const Answer& answer, std::string& out) override {
    const Choice& choice = answer.choices()[0];
    if (choice.text.size() <= text_bytes_ && choice.tokens.size() <= num_tokens_) return;
    append("response.output_text.delta",
           {{"item_id", item_id_},
            {"output_index", 0},
            {"content_index", 0},
            {"delta", choice.text.substr(text_bytes_)},
            {"logprobs", logprobs(choice, num_tokens_)}},
           out);
    text_bytes_ = choice.text.size();
    num_tokens_ = choice.tokens.size();
  }

  void end(const Answer& answer, std::string& out) override {
    HEADRACE_CHECK(!answer.has_failed());
    more(answer, out);
    const Choice& choice = answer.choices()[0];
    const Json known = logprobs(choice, 0);
    append("response.output_text.done",
           {{"item_id", item_id_},
            {"output_index", 0},
            {"content_index", 0},
            {"text", choice.text},
            {"logprobs", known}},
           out);
    append("response.content_part.done",
           {{"item_id", item_id_},
            {"output_index", 0},
            {"content_index", 0},
            {"part", part(choice.text, known)}},
           out);
    append("response.output_item.done",
           {{"output_index", 0},
            {"item", item(status(choice), Json::array({part(choice.text, known)}))}},
           out);
    append(choice.end == ChoiceEnd::length ? "response.incomplete" : "response.completed",
           {{"response", finished(answer)}}, out);
  }

  void failed(const ApiError& error, std::string& out) override {
    const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    append("error",
           {{"code", or_null(error.code)},
            {"message", error.message},
            {"param", or_null(error.param)}},
           out);
    Json response = this->response("failed", Json::array());
    response["error"] = {{"code", error.status == 429 ? "rate_limit_exceeded" : "server_error"},
                         {"message", error.message}};
    append("response.failed", {{"response", std::move(response)}}, out);
  }

 private:
  static std::string_view status(const Choice& choice) {
    return choice.end == ChoiceEnd::length ? "incomplete" : "completed";
  }

  Json logprobs(const Choice& choice, size_t first) const {
    const int32_t num_top = request_->params.num_logprobs;
    if (num_top < 0) return Json::array();
    return chat_logprobs(choice, first, num_top, *model_->tokenizer)["content"];
  }

  static Json part(std::string_view text, Json logprobs) {
    if (logprobs.is_null()) logprobs = Json::array();
    return {{"type", "output_text"},
            {"annotations", Json::array()},
            {"logprobs", std::move(logprobs)},
            {"text", std::string(text)}};
  }

  Json item(std::string_view status, Json content) const {
    return {{"id", item_id_},
            {"type", "message"},
            {"status", status},
            {"role", "assistant"},
            {"content", std::move(content)}};
  }

  Json response(std::string_view status, Json output) const {
    const GenerationParams& params = request_->params;
    const Json& repeated = *request_->repeated;
    Json out = {{"id", head_.id},
                {"object", "response"},
                {"created_at", head_.created_unix_seconds},
                {"status", status},
                {"background", false},
                {"error", nullptr},
                {"incomplete_details", nullptr},
                {"instructions", repeated["instructions"]}};
    out["max_output_tokens"] = params.has_max_tokens && params.stop.max_tokens >= 0
                                   ? Json(params.stop.max_tokens)
                                   : Json();
    out["max_tool_calls"] = nullptr;
    out["model"] = model_->name;
    out["output"] = std::move(output);
    out["parallel_tool_calls"] = true;
    out["previous_response_id"] = nullptr;
    out["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
    out["service_tier"] = "default";
    out["store"] = false;
    out["temperature"] = short_number(params.sampling.temperature);
    out["text"] = {{"format", {{"type", "text"}}}};
    out["tool_choice"] = "auto";
    out["tools"] = Json::array();
    out["top_logprobs"] = std::max(params.num_logprobs, 0);
    out["top_p"] = short_number(params.sampling.top_p);
    out["truncation"] = params.truncate_prompt_tokens == -1 ? "auto" : "disabled";
    out["usage"] = nullptr;
    out["user"] = params.user.empty() ? Json() : Json(params.user);
    out["metadata"] = repeated["metadata"];
    out["system_fingerprint"] = model_->fingerprint;
    return out;
  }

  Json finished(const Answer& answer) const {
    const Choice& choice = answer.choices()[0];
    HEADRACE_CHECK(choice.end != ChoiceEnd::running);
    const Json content = Json::array({part(choice.text, logprobs(choice, 0))});
    Json out = response(status(choice), Json::array({item(status(choice), content)}));
    if (choice.end == ChoiceEnd::length) {
      out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    }
    if (!answer.answered_by().empty()) out["model"] = answer.answered_by();
    const Usage usage = answer.usage();
    out["usage"] = {{"input_tokens", usage.prompt_tokens},
                    {"input_tokens_details",
                     {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
                    {"output_tokens", usage.completion_tokens},
                    {"output_tokens_details", {{"reasoning_tokens", 0}}},
                    {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
    out["timings"] = timings_json(answer.times(), usage.cached_tokens, request_->tokenize_ms);
    out["warnings"] = request_->warnings;
    return out;
  }

  void append(std::string_view type, const Json& rest, std::string& out) {
    Json event = {{"type", type}, {"sequence_number", sequence_number_++}};
    event.update(rest);
    append_sse(out, type, dumped(event));
  }

  const ResponseHead head_;
  const std::string item_id_;
  const std::shared_ptr<const PreparedRequest> request_;
  const std::shared_ptr<const ServedModel> model_;
  int64_t sequence_number_ = 0;
  size_t text_bytes_ = 0;
  size_t num_tokens_ = 0;
};

}  // namespace

std::unique_ptr<ReplyFormat> make_response_format(const ResponseHead& head,
                                                  std::shared_ptr<const PreparedRequest> request,
                                                  std::shared_ptr<const ServedModel> model) {
  return std::make_unique<ResponseFormat>(head, std::move(request), std::move(model));
}

}  // namespace headrace::api
