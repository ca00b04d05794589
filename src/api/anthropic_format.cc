// See anthropic_format.h.
#include "api/anthropic_format.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/response_json.h"
#include "api/sse.h"
#include "base/check.h"

namespace headrace::api {
namespace {

std::string_view error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

class AnthropicFormat final : public ReplyFormat {
 public:
  AnthropicFormat(ResponseHead head, std::shared_ptr<const PreparedRequest> request,
                  std::shared_ptr<const ServedModel> model)
      : head_(std::move(head)), request_(std::move(request)), model_(std::move(model)) {}

  std::string whole(const Answer& answer) override {
    HEADRACE_CHECK(!answer.has_failed());
    const Choice& choice = answer.choices()[0];
    Json out = message(Json::array({{{"type", "text"}, {"text", choice.text}}}));
    if (!answer.answered_by().empty()) out["model"] = answer.answered_by();
    out.update(stop(choice));
    out["usage"] = usage(answer);
    add_rest(answer, out);
    return dumped(out);
  }

  void begin(std::string& out) override {
    // What of the prompt was cached is known later; message_delta says it.
    Json first = message(Json::array());
    first["usage"] = {{"input_tokens", request_->requests[0].prompt.size()},
                      {"cache_creation_input_tokens", 0},
                      {"cache_read_input_tokens", 0},
                      {"output_tokens", 0}};
    append("message_start", {{"message", std::move(first)}}, out);
    append("content_block_start",
           {{"index", 0}, {"content_block", {{"type", "text"}, {"text", ""}}}}, out);
    append("ping", Json::object(), out);
  }

  void more(const Answer& answer, std::string& out) override {
    const std::string& text = answer.choices()[0].text;
    if (text.size() <= text_bytes_) return;
    append("content_block_delta",
           {{"index", 0}, {"delta", {{"type", "text_delta"}, {"text", text.substr(text_bytes_)}}}},
           out);
    text_bytes_ = text.size();
  }

  void end(const Answer& answer, std::string& out) override {
    HEADRACE_CHECK(!answer.has_failed());
    more(answer, out);
    append("content_block_stop", {{"index", 0}}, out);
    Json last = {{"delta", stop(answer.choices()[0])}, {"usage", usage(answer)}};
    add_rest(answer, last);
    append("message_delta", last, out);
    append("message_stop", Json::object(), out);
  }

  void failed(const ApiError& error, std::string& out) override {
    append_sse(out, "error", anthropic_error(error));
  }

 private:
  Json message(Json content) const {
    return {{"id", head_.id},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_->name},
            {"content", std::move(content)},
            {"stop_reason", nullptr},
            {"stop_sequence", nullptr}};
  }

  static Json stop(const Choice& choice) {
    HEADRACE_CHECK(choice.end != ChoiceEnd::running);
    std::string_view reason = "end_turn";
    if (choice.end == ChoiceEnd::length) reason = "max_tokens";
    if (choice.stop_string) reason = "stop_sequence";
    return {{"stop_reason", reason},
            {"stop_sequence", choice.stop_string ? Json(*choice.stop_string) : Json()}};
  }

  /// Cached tokens are not among the input's, as there.
  static Json usage(const Answer& answer) {
    const Usage usage = answer.usage();
    return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", usage.cached_tokens},
            {"output_tokens", usage.completion_tokens}};
  }

  void add_rest(const Answer& answer, Json& to) const {
    to["system_fingerprint"] = model_->fingerprint;
    to["timings"] =
        timings_json(answer.times(), answer.usage().cached_tokens, request_->tokenize_ms);
    to["warnings"] = request_->warnings;
  }

  static void append(std::string_view type, const Json& rest, std::string& out) {
    Json event = {{"type", type}};
    event.update(rest);
    append_sse(out, type, dumped(event));
  }

  const ResponseHead head_;
  const std::shared_ptr<const PreparedRequest> request_;
  const std::shared_ptr<const ServedModel> model_;
  size_t text_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ReplyFormat> make_anthropic_format(const ResponseHead& head,
                                                   std::shared_ptr<const PreparedRequest> request,
                                                   std::shared_ptr<const ServedModel> model) {
  return std::make_unique<AnthropicFormat>(head, std::move(request), std::move(model));
}

std::string anthropic_error(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return dumped({{"type", "error"},
                 {"error",
                  {{"type", error_type(error.status)},
                   {"message", error.message},
                   {"code", or_null(error.code)},
                   {"param", or_null(error.param)}}}});
}

}  // namespace headrace::api
