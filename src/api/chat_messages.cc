// The messages of a chat request; see chat_request.h.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/chat_request.h"
#include "api/fields.h"

namespace headrace::api {
namespace {

Error not_built(std::string path, std::string_view what) {
  return {ErrorCode::unsupported, std::string(what) + " not built in", std::move(path), ""};
}

Result<std::string> part_text(const Json& part, const std::string& path) {
  if (!part.is_object()) return wrong_value(path, "an object with a type", part);
  const auto type = part.find("type");
  if (type == part.end()) return missing_value(path + ".type", "\"text\"");
  const Json& found = *type;
  if (found == "text" || found == "input_text" || found == "output_text") {
    const auto text = part.find("text");
    if (text != part.end() && text->is_string()) return text->get<std::string>();
    if (text == part.end()) return missing_value(path + ".text", "a string");
    return wrong_value(path + ".text", "a string", *text);
  }
  for (const std::string_view name : {"image_url", "input_image", "image"}) {
    if (found != name) continue;
    return Error{ErrorCode::unsupported, "images are not supported", path,
                 "describe the image in words"};
  }
  for (const std::string_view name :
       {"input_audio", "audio", "video_url", "video", "file", "input_file", "document", "tool_use",
        "tool_result", "search_result", "refusal"}) {
    if (found != name) continue;
    return Error{ErrorCode::unsupported,
                 "parts of type " + found_text(found) + " are not supported", path, "only text is"};
  }
  return wrong_value(path + ".type", "\"text\"", found);
}

/// Anthropic's blocks of reasoning, which clients send back.
bool is_thought(const Json& part) {
  if (!part.is_object() || !part.contains("type")) return false;
  return part["type"] == "thinking" || part["type"] == "redacted_thinking";
}

}  // namespace

Result<std::string> content_text(const Json& content, const std::string& path,
                                 std::vector<std::string>& warnings) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return wrong_value(path, "a string or an array of parts", content);
  std::string joined;
  bool is_first = true;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string part_path = path + "[" + std::to_string(i) + "]";
    if (is_thought(content[i])) {
      add_warning(warnings, part_path + ": what the model thought before is left out");
      continue;
    }
    HEADRACE_ASSIGN(const std::string text, part_text(content[i], part_path));
    if (!is_first) joined += '\n';
    is_first = false;
    joined += text;
  }
  return joined;
}

namespace {

Result<std::string> read_role(Fields& fields, std::vector<std::string>& warnings) {
  constexpr std::string_view kRoles = "\"system\", \"developer\", \"user\" or \"assistant\"";
  const Json* const role = fields.find("role");
  if (role == nullptr) return missing_value(fields.path_of("role"), kRoles);
  if (*role == "system" || *role == "user" || *role == "assistant") return role->get<std::string>();
  if (*role == "developer") {
    add_warning(warnings,
                fields.path_of("role") + ": \"developer\" is given to the model as \"system\"");
    return std::string("system");
  }
  if (*role == "tool" || *role == "function") {
    return not_built(fields.path_of("role"), "tools are");
  }
  return wrong_value(fields.path_of("role"), kRoles, *role);
}

}  // namespace

Result<Json> read_message(const Json& value, const std::string& path, const RequestLimits& limits,
                          std::vector<std::string>& warnings) {
  if (!value.is_object()) return wrong_value(path, "an object with role and content", value);
  Fields fields(value, path);
  Json message;
  HEADRACE_ASSIGN(message["role"], read_role(fields, warnings));
  for (const std::string_view name : {"tool_calls", "function_call"}) {
    const Json* const calls = fields.find(name);
    if (calls != nullptr && !(calls->is_array() && calls->empty())) {
      return not_built(fields.path_of(name), "tools are");
    }
  }
  if (const Json* const content = fields.find("content"); content != nullptr) {
    HEADRACE_ASSIGN(message["content"],
                    content_text(*content, fields.path_of("content"), warnings));
  } else if (message["role"] == "assistant") {
    message["content"] = "";
  } else {
    return missing_value(fields.path_of("content"), "a string or an array of parts");
  }
  std::string text;
  if (fields.text("name", text, limits.max_name_bytes)) message["name"] = text;
  if (fields.text("reasoning_content", text, limits.max_body_bytes)) {
    message["reasoning_content"] = text;
  }
  // What the answers of OpenAI's APIs bring along.
  for (const std::string_view name :
       {"refusal", "annotations", "audio", "tool_call_id", "id", "type", "status", "phase"}) {
    fields.skip(name);
  }
  HEADRACE_TRY(fields.status());
  for (std::string& warning : fields.unknown()) add_warning(warnings, std::move(warning));
  return message;
}

Result<void> check_num_messages(size_t num, const RequestLimits& limits, const std::string& path) {
  if (num <= limits.max_messages) return {};
  return Error{ErrorCode::invalid_argument,
               "at most " + std::to_string(limits.max_messages) + " messages are allowed, found " +
                   std::to_string(num),
               path, ""};
}

Result<Json> read_messages(const Json& value, const RequestLimits& limits,
                           std::vector<std::string>& warnings) {
  if (!value.is_array()) return wrong_value("messages", "an array of messages", value);
  if (value.empty()) return wrong_value("messages", "at least one message", value);
  HEADRACE_TRY(check_num_messages(value.size(), limits, "messages"));
  Json messages = Json::array();
  for (size_t i = 0; i < value.size(); ++i) {
    HEADRACE_ASSIGN(Json message, read_message(value[i], "messages[" + std::to_string(i) + "]",
                                               limits, warnings));
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace headrace::api
