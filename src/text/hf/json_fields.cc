// See json_fields.h.
#include "text/hf/json_fields.h"

#include <nlohmann/json.hpp>

#include "checkpoint/json_object.h"
#include "text/hf/tokenizer_json.h"

namespace headrace::text {

using nlohmann::json;

Error bad_field(std::string_view key, std::string message, ErrorCode code) {
  return Error{code, std::move(message), std::string(kTokenizerJson) + ": " + std::string(key), ""};
}

Result<json> parse_object(std::string_view text, std::string_view file) {
  return parse_json_object(text, file, kMaxJsonBytes);
}

const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

bool is_true(const json& object, const char* name) {
  return flag_or(object, name, false);
}

bool flag_or(const json& object, const char* name, bool otherwise) {
  const json& value = member(object, name);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

Result<std::string> text_or(const json& object, const char* name, std::string otherwise,
                            std::string_view key) {
  const json& value = member(object, name);
  if (value.is_null()) return otherwise;
  if (!value.is_string()) {
    return bad_field(std::string(key) + "." + name, "expected a text, found " + shown(value));
  }
  return value.get<std::string>();
}

Result<size_t> count_or(const json& object, const char* name, size_t otherwise, size_t most,
                        std::string_view key) {
  const json& value = member(object, name);
  if (value.is_null()) return otherwise;
  if (!value.is_number_unsigned() || value.get<uint64_t>() > most) {
    return bad_field(
        std::string(key) + "." + name,
        "expected a whole number of at most " + std::to_string(most) + ", found " + shown(value));
  }
  return value.get<size_t>();
}

std::vector<int64_t> listed_ids(const json& value) {
  std::vector<int64_t> ids;
  const auto add = [&](const json& id) {
    if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
  };
  if (value.is_array()) {
    for (const json& id : value) add(id);
  } else {
    add(value);
  }
  return ids;
}

std::string shown(const json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 40);
}

}  // namespace headrace::text
