// The body of POST /v1/responses, without a store of earlier ones; see prepared_request.h.
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "api/fit_prompt.h"
#include "api/json_body.h"
#include "api/prepare_parts.h"

namespace headrace::api {
namespace {

constexpr const char* kInput = "input";
constexpr const char* kStateless = "nothing is stored here";
constexpr const char* kSendAll = "send the whole conversation as input";

/// What only a server that remembers could do.
void refuse_state(Fields& fields) {
  for (const std::string_view name : {"previous_response_id", "conversation", "prompt"}) {
    if (fields.find(name) != nullptr) fields.refuse(name, kStateless, kSendAll);
  }
  bool background = false;
  if (fields.boolean("background", background) && background) {
    fields.refuse("background", kStateless, "leave it out, or use stream");
  }
  bool store = false;
  if (fields.boolean("store", store) && store)
    fields.note("store", "is true, but " + std::string(kStateless));
}

void read_text_format(Fields& fields) {
  const Json* const text = fields.find("text");
  if (text == nullptr) return;
  if (!text->is_object()) return fields.fail("text", "an object", *text);
  Fields inner(*text, "text");
  const Json* const format = inner.find("format");
  if (format != nullptr) {
    const auto type = format->is_object() ? format->find("type") : format->end();
    if (type == format->end()) {
      return fields.fail("text.format", "an object with a type", *format);
    }
    if (*type != "text") {
      return fields.refuse("text.format",
                           "structured output is not built in, so this constraint "
                           "cannot be kept",
                           "only {\"type\": \"text\"} is known");
    }
  }
  if (inner.find("verbosity") != nullptr) fields.note("text.verbosity", "does nothing here");
}

/// Whether log-probabilities are told: `include` asks for them, or how many asks by itself.
void read_response_logprobs(Fields& fields, const RequestLimits& limits, GenerationParams& out) {
  int32_t top = 0;
  bool wanted = fields.integer("top_logprobs", top, 0, limits.max_logprobs) && top > 0;
  if (const Json* const include = fields.find("include"); include != nullptr) {
    if (!include->is_array()) return fields.fail("include", "an array of strings", *include);
    for (const Json& name : *include) {
      if (name == "message.output_text.logprobs") {
        wanted = true;
      } else {
        fields.note("include", "asks for " + found_text(name) + ", which there is not");
      }
    }
  }
  if (wanted) out.num_logprobs = top;
}

void read_options(Fields& fields, GenerationParams& out) {
  std::string truncation;
  if (fields.text("truncation", truncation, 16)) {
    if (truncation == "auto") {
      out.truncate_prompt_tokens = -1;
      out.truncation_name = "truncation";
    } else if (truncation != "disabled") {
      fields.fail("truncation", "\"auto\" or \"disabled\"", *fields.find("truncation"));
    }
  }
  if (fields.find("reasoning") != nullptr) fields.note("reasoning", "does nothing here");
  fields.skip("max_tool_calls");
}

/// Of {"metadata": {...}}, which comes back as it is.
Json read_metadata(Fields& fields) {
  const Json* const metadata = fields.find("metadata");
  if (metadata == nullptr) return Json::object();
  if (!metadata->is_object()) {
    fields.fail("metadata", "an object", *metadata);
    return Json::object();
  }
  for (const auto& [name, value] : metadata->items()) {
    if (!value.is_string()) {
      fields.fail(wrong_value("metadata." + name, "a string", value));
      break;
    }
  }
  return *metadata;
}

/// One item of the input; nothing where the model is not told of it.
Result<std::optional<Json>> read_item(const Json& item, const std::string& path,
                                      const RequestLimits& limits,
                                      std::vector<std::string>& warnings) {
  if (!item.is_object()) return wrong_value(path, "an object with role and content", item);
  const auto type = item.find("type");
  if (type == item.end() || type->is_null() || *type == "message") {
    HEADRACE_ASSIGN(Json message, read_message(item, path, limits, warnings));
    return std::optional<Json>(std::move(message));
  }
  if (*type == "reasoning") {
    add_warning(warnings, path + ": what the model thought before is left out");
    return std::optional<Json>();
  }
  if (!type->is_string()) return wrong_value(path + ".type", "\"message\"", *type);
  if (*type == "item_reference") return Error{ErrorCode::unsupported, kStateless, path, kSendAll};
  return Error{ErrorCode::unsupported, "items of type " + found_text(*type) + " are not built in",
               path, "only messages are"};
}

Result<Json> read_input(const Json& input, const RequestLimits& limits,
                        std::vector<std::string>& warnings) {
  if (input.is_string()) {
    return Json::array({chat_message("user", input.get_ref<const std::string&>())});
  }
  if (!input.is_array() || input.empty()) {
    return wrong_value(kInput, "a string or an array of items", input);
  }
  HEADRACE_TRY(check_num_messages(input.size(), limits, kInput));
  Json messages = Json::array();
  for (size_t i = 0; i < input.size(); ++i) {
    const std::string path = std::string(kInput) + "[" + std::to_string(i) + "]";
    HEADRACE_ASSIGN(auto message, read_item(input[i], path, limits, warnings));
    if (message) messages.push_back(std::move(*message));
  }
  if (messages.empty()) return wrong_value(kInput, "at least one message", input);
  return messages;
}

/// Templates know one system message, at the beginning.
void put_instructions(const std::string& instructions, Json& messages) {
  if (messages[0]["role"] != "system") {
    messages.insert(messages.begin(), chat_message("system", instructions));
    return;
  }
  messages[0]["content"] = instructions + "\n\n" + messages[0]["content"].get<std::string>();
}

Result<void> fill_response(const Json& body, const ServedModel& model, const Clock& clock,
                           PreparedRequest& out) {
  if (!body.is_object()) return wrong_value(std::string(kBody), "an object", body);
  const ParamsContext context = params_context(model);
  Fields fields(body);
  read_generation_params(fields, context, out.params);
  refuse_several(fields, out.params);
  refuse_state(fields);
  read_text_format(fields);
  read_response_logprobs(fields, context.limits, out.params);
  read_options(fields, out.params);
  Json repeated = {{"instructions", nullptr}, {"metadata", read_metadata(fields)}};
  std::string instructions;
  const bool has_instructions =
      fields.text("instructions", instructions, context.limits.max_body_bytes);
  if (has_instructions) repeated["instructions"] = instructions;
  const Json* const input = fields.find(kInput);
  HEADRACE_TRY(fields.status());
  if (input == nullptr) return missing_value(kInput, "a string or an array of items");
  HEADRACE_TRY(check_params(out.params, context.vocab_size));
  HEADRACE_TRY(check_model(model, out));
  std::vector<std::string> warnings = fields.unknown();
  HEADRACE_ASSIGN(Json messages, read_input(*input, context.limits, warnings));
  out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
  if (has_instructions) put_instructions(instructions, messages);
  out.repeated = std::make_shared<const Json>(std::move(repeated));
  const ChatPromptOptions options{.now_unix_seconds = clock.unix_seconds()};
  HEADRACE_ASSIGN(auto ids, fitting_chat_ids(model, messages, options, kInput, out));
  add_prompt(model, std::move(ids), out);
  return {};
}

}  // namespace

Result<PreparedRequest> prepare_response(const Json& body, const ServedModel& model,
                                         const Clock& clock) {
  const int64_t begin_ns = clock.now_ns();
  PreparedRequest out;
  out.prompt_field = kInput;
  HEADRACE_TRY(fill_response(body, model, clock, out));
  out.tokenize_ms = static_cast<double>(clock.now_ns() - begin_ns) * 1e-6;
  return out;
}

}  // namespace headrace::api
