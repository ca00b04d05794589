// See chat_request.h.
#include "api/chat_request.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/in_quotes.h"
#include "api/json_body.h"

namespace headrace::api {
namespace {

/// What a request may set in a template. Anything else could take the place of what a template
/// trusts, such as the name of the end token.
constexpr std::array<std::string_view, 6> kVariables = {"enable_thinking", "thinking",
                                                        "thinking_budget", "reasoning_effort",
                                                        "date_string",     "language"};

std::string joined_variables() {
  std::string out;
  for (const std::string_view name : kVariables) {
    out += (out.empty() ? "" : ", ") + std::string(name);
  }
  return out;
}

/// An object of allowed names with plain values, or null.
Result<Json> read_variables(const Json& value) {
  constexpr size_t kMaxBytes = 256;
  const std::string path = "chat_template_kwargs";
  if (!value.is_object()) return wrong_value(path, "an object", value);
  for (const auto& [name, variable] : value.items()) {
    if (std::find(kVariables.begin(), kVariables.end(), name) == kVariables.end()) {
      return Error{ErrorCode::invalid_argument,
                   "expected one of " + joined_variables() + ", found " + in_quotes(name), path,
                   ""};
    }
    const bool is_short =
        variable.is_string() && variable.get_ref<const std::string&>().size() <= kMaxBytes;
    if (!is_short && !variable.is_boolean() && !variable.is_number()) {
      return wrong_value(path + "." + name,
                         "true, false, a number or a string of at most 256 bytes", variable);
    }
  }
  return value;
}

/// OpenAI's shape: whether, and how many beside.
void read_logprobs(Fields& fields, const RequestLimits& limits, GenerationParams& out) {
  bool wanted = false;
  fields.boolean("logprobs", wanted);
  int32_t top = 0;
  const bool has_top = fields.integer("top_logprobs", top, 0, limits.max_logprobs);
  if (has_top && top > 0 && !wanted) {
    fields.fail({ErrorCode::invalid_argument, "is allowed only where logprobs is true",
                 "top_logprobs", ""});
  }
  if (wanted) out.num_logprobs = top;
}

Result<void> check_continuation(const Fields& fields, const ChatRequest& request) {
  if (!request.continues_last_message) return {};
  if (request.adds_generation_prompt && fields.object().contains("add_generation_prompt")) {
    return Error{ErrorCode::invalid_argument,
                 "contradicts continue_final_message: the answer either begins or goes on",
                 "add_generation_prompt", ""};
  }
  if (request.messages->back()["role"] != "assistant") {
    return Error{ErrorCode::invalid_argument,
                 "expected the last message to be the assistant's, found the role " +
                     found_text(request.messages->back()["role"]),
                 "continue_final_message", ""};
  }
  return {};
}

}  // namespace

Result<ChatRequest> parse_chat_request(const Json& body, const ParamsContext& context) {
  if (!body.is_object()) return wrong_value(std::string(kBody), "an object", body);
  Fields fields(body);
  ChatRequest out;
  read_generation_params(fields, context, out.params);
  read_logprobs(fields, context.limits, out.params);
  fields.boolean("add_generation_prompt", out.adds_generation_prompt);
  fields.boolean("continue_final_message", out.continues_last_message);
  const Json* const messages = fields.find("messages");
  const Json* const variables = fields.find("chat_template_kwargs");
  HEADRACE_TRY(fields.status());
  if (messages == nullptr) return missing_value("messages", "an array of messages");
  out.warnings = fields.unknown();
  HEADRACE_ASSIGN(Json read, read_messages(*messages, context.limits, out.warnings));
  out.messages = std::make_shared<const Json>(std::move(read));
  Json extra;
  if (variables != nullptr) {
    HEADRACE_ASSIGN(extra, read_variables(*variables));
  }
  out.template_variables = std::make_shared<const Json>(std::move(extra));
  HEADRACE_TRY(check_continuation(fields, out));
  if (out.continues_last_message) out.adds_generation_prompt = false;
  HEADRACE_TRY(check_params(out.params, context.vocab_size));
  return out;
}

}  // namespace headrace::api
