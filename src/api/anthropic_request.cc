// See anthropic_request.h; and POST /v1/messages, see prepared_request.h.
#include "api/anthropic_request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/fit_prompt.h"
#include "api/json_body.h"
#include "api/prepare_parts.h"

namespace headrace::api {
namespace {

constexpr const char* kMessages = "messages";

Result<Json> read_turn(const Json& value, const std::string& path,
                       std::vector<std::string>& warnings) {
  if (!value.is_object()) return wrong_value(path, "an object with role and content", value);
  Fields fields(value, path);
  const Json* const role = fields.find("role");
  const Json* const content = fields.find("content");
  constexpr std::string_view kRoles = "\"user\" or \"assistant\"";
  if (role == nullptr) return missing_value(path + ".role", kRoles);
  if (*role != "user" && *role != "assistant" && *role != "system") {
    return wrong_value(path + ".role", kRoles, *role);
  }
  if (content == nullptr) return missing_value(path + ".content", "a string or an array of blocks");
  HEADRACE_ASSIGN(const std::string text, content_text(*content, path + ".content", warnings));
  for (std::string& warning : fields.unknown(1)) {
    add_warning(warnings, std::move(warning));
  }
  return chat_message(role->get_ref<const std::string&>(), text);
}

/// Constraints and tools under Anthropic's names.
void refuse_more(Fields& fields) {
  constexpr const char* kNoConstraint =
      "structured output is not built in, so this constraint cannot be kept";
  if (fields.find("output_format") != nullptr) fields.refuse("output_format", kNoConstraint);
  const Json* const config = fields.find("output_config");
  if (config != nullptr) {
    if (config->is_object() && config->contains("format") && !(*config)["format"].is_null()) {
      fields.refuse("output_config.format", kNoConstraint);
    }
    fields.note("output_config", "does nothing here");
  }
  const Json* const servers = fields.find("mcp_servers");
  if (servers != nullptr && !(servers->is_array() && servers->empty())) {
    fields.refuse("mcp_servers", "tools are not built in");
  }
  const Json* const thinking = fields.find("thinking");
  if (thinking != nullptr &&
      !(thinking->is_object() && thinking->value("type", Json()) == "disabled")) {
    fields.note("thinking", "does nothing here");
  }
}

/// {"user_id": ...}.
void read_user(Fields& fields, const RequestLimits& limits, std::string& to) {
  const Json* const metadata = fields.find("metadata");
  if (metadata == nullptr) return;
  if (!metadata->is_object()) return fields.fail("metadata", "an object", *metadata);
  Fields inner(*metadata, "metadata");
  inner.text("user_id", to, limits.max_name_bytes);
  if (auto read = inner.status(); !read.ok()) fields.fail(std::move(read).error());
}

Result<void> fill_anthropic(const Json& body, const ServedModel& model, const Clock& clock,
                            bool is_generated, PreparedRequest& out) {
  if (!body.is_object()) return wrong_value(std::string(kBody), "an object", body);
  const ParamsContext context = params_context(model);
  Fields fields(body);
  read_generation_params(fields, context, out.params);
  refuse_several(fields, out.params);
  refuse_more(fields);
  read_user(fields, context.limits, out.params.user);
  for (const std::string_view name : {"cache_control", "service_tier"}) fields.skip(name);
  auto conversation = read_anthropic(fields, context.limits);
  HEADRACE_TRY(fields.status());
  if (!conversation.ok()) return std::move(conversation).error();
  if (is_generated && !out.params.has_max_tokens)
    return missing_value("max_tokens", "a whole number");
  HEADRACE_TRY(check_params(out.params, context.vocab_size));
  HEADRACE_TRY(check_model(model, out));
  for (auto& more : {fields.unknown(), conversation->warnings}) {
    out.warnings.insert(out.warnings.end(), more.begin(), more.end());
  }
  out.goes_on = conversation->continues_last_message;
  const ChatPromptOptions options{.now_unix_seconds = clock.unix_seconds(),
                                  .adds_generation_prompt = !conversation->continues_last_message,
                                  .continues_last_message = conversation->continues_last_message};
  auto ids = fitting_chat_ids(model, conversation->messages, options, kMessages, out);
  if (!ids.ok()) {
    if (ids.error().where == "continue_final_message") ids.error().where = kMessages;
    return std::move(ids).error();
  }
  add_prompt(model, std::move(ids).value(), out);
  return {};
}

}  // namespace

Result<AnthropicConversation> read_anthropic(Fields& fields, const RequestLimits& limits) {
  AnthropicConversation out;
  out.messages = Json::array();
  const Json* const system = fields.find("system");
  const Json* const messages = fields.find(kMessages);
  HEADRACE_TRY(fields.status());
  if (system != nullptr) {
    HEADRACE_ASSIGN(const std::string text, content_text(*system, "system", out.warnings));
    if (!text.empty()) out.messages.push_back(chat_message("system", text));
  }
  if (messages == nullptr) return missing_value(kMessages, "an array of messages");
  if (!messages->is_array() || messages->empty()) {
    return wrong_value(kMessages, "an array of messages", *messages);
  }
  HEADRACE_TRY(check_num_messages(messages->size(), limits, kMessages));
  const size_t num_before = out.messages.size();
  for (size_t i = 0; i < messages->size(); ++i) {
    const std::string path = std::string(kMessages) + "[" + std::to_string(i) + "]";
    HEADRACE_ASSIGN(Json turn, read_turn((*messages)[i], path, out.warnings));
    const bool joins =
        out.messages.size() > num_before && out.messages.back()["role"] == turn["role"];
    if (joins) {
      auto& text = out.messages.back()["content"].get_ref<std::string&>();
      text += '\n' + turn["content"].get<std::string>();
    } else {
      out.messages.push_back(std::move(turn));
    }
  }
  out.continues_last_message = out.messages.back()["role"] == "assistant";
  return out;
}

Result<PreparedRequest> prepare_anthropic(const Json& body, const ServedModel& model,
                                          const Clock& clock) {
  const int64_t begin_ns = clock.now_ns();
  PreparedRequest out;
  out.prompt_field = kMessages;
  HEADRACE_TRY(fill_anthropic(body, model, clock, true, out));
  out.tokenize_ms = static_cast<double>(clock.now_ns() - begin_ns) * 1e-6;
  return out;
}

Result<PreparedRequest> prepare_anthropic_count(const Json& body, const ServedModel& model,
                                                const Clock& clock) {
  PreparedRequest out;
  out.prompt_field = kMessages;
  HEADRACE_TRY(fill_anthropic(body, model, clock, false, out));
  return out;
}

}  // namespace headrace::api
