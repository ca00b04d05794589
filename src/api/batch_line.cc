// See batch_line.h.
#include "api/batch_line.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/fields.h"
#include "api/in_quotes.h"
#include "api/json_body.h"

namespace headrace::api {
namespace {

constexpr std::string_view kIdPrefix = "batch_req_";
constexpr std::string_view kUrls =
    "\"/v1/completions\", \"/v1/chat/completions\", \"/v1/responses\" or \"/v1/embeddings\"";

std::string json_string(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<void> read_line(Json& json, const RequestLimits& limits, BatchLine& line) {
  if (!json.is_object()) return wrong_value(std::string(kBody), "a JSON object", json);
  Fields fields(json);
  std::string text;
  if (!fields.text("custom_id", text, limits.max_name_bytes)) {
    HEADRACE_TRY(fields.status());
    return missing_value("custom_id", "a string");
  }
  line.custom_id = text;
  if (fields.text("method", text, limits.max_name_bytes) && text != "POST") {
    return wrong_value("method", "\"POST\"", text);
  }
  if (!fields.text("url", text, limits.max_name_bytes)) {
    HEADRACE_TRY(fields.status());
    return missing_value("url", kUrls);
  }
  const Protocol* const protocol = protocol_at(text);
  if (protocol == nullptr || !protocol->is_in_batch_files) {
    Error error = wrong_value("url", kUrls, text);
    error.code = ErrorCode::not_found;
    return error;
  }
  line.protocol = protocol;
  const Json* const body = fields.find("body");
  HEADRACE_TRY(fields.status());
  if (body == nullptr) return missing_value("", "an object as body");
  if (!body->is_object()) return wrong_value("", "an object as body", *body);
  for (const std::string& unknown : fields.unknown()) line.warnings.push_back("line: " + unknown);
  line.body = std::make_shared<const Json>(std::move(json["body"]));
  return {};
}

/// Of a line that could not be read as a whole.
std::optional<std::string> custom_id_of(const Json& json, const RequestLimits& limits) {
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find("custom_id");
  if (found == json.end() || !found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();
  if (text.size() > limits.max_name_bytes) return std::nullopt;
  return text;
}

/// The fields of the body are named as in a request of its own.
void set_error(BatchLine& line, Error error) {
  constexpr std::string_view kInBody = "body.";
  if (error.where.starts_with(kInBody)) error.where.erase(0, kInBody.size());
  if (!line.custom_id) {
    error.message = "line " + std::to_string(line.number) + ": " + error.message;
  }
  line.error = std::move(error);
}

/// Up to the response's body, and from there on.
std::string output_line(const BatchLine& line, int status, std::string_view body,
                        std::string_view error) {
  const std::string key = hex_of(line.key);
  std::string out = "{\"id\":\"" + std::string(kIdPrefix) + key + "\",\"custom_id\":";
  out += line.custom_id ? json_string(*line.custom_id) : "null";
  out += ",\"response\":{\"status_code\":" + std::to_string(status) + ",\"request_id\":\"req_" +
         key + "\",\"body\":";
  out += body;
  out += "},\"error\":";
  out += error;
  out += "}\n";
  return out;
}

}  // namespace

BatchLine parse_batch_line(std::string_view text, int64_t number, bool is_cut,
                           const RequestLimits& limits) {
  BatchLine line;
  line.number = number;
  line.key = digest_of(text);
  RequestLimits line_limits = limits;
  line_limits.max_body_bytes = std::numeric_limits<size_t>::max();
  Json json;
  auto read = parse_body(text, line_limits, json, 1);  // the body has a request's own depth
  if (read.ok()) {
    read = read_line(json, limits, line);
  } else {
    line.custom_id = custom_id_of(json, limits);
  }
  if (is_cut) {
    read = Error{ErrorCode::out_of_range,
                 "the line is longer than the " + std::to_string(limits.max_body_bytes) +
                     " bytes that are allowed",
                 std::string(kBody), ""};
  }
  if (!read.ok()) set_error(line, std::move(read).error());
  return line;
}

Digest duplicate_key(const Digest& key) {
  return digest_of("duplicate " + hex_of(key));
}

void mark_as_duplicate(BatchLine& line) {
  line.key = duplicate_key(line.key);
  line.error = Error{ErrorCode::invalid_argument,
                     in_quotes(line.custom_id.value_or("")) + " is that of an earlier line too",
                     "custom_id", "give each line its own"};
}

std::string batch_success(const BatchLine& line, std::string_view body) {
  return output_line(line, 200, body, "null");
}

std::string batch_failure(const BatchLine& line, const ApiError& error) {
  const std::string brief =
      "{\"code\":" + json_string(error.code) + ",\"message\":" + json_string(error.message) + "}";
  return output_line(line, error.status, error_json(error), brief);
}

Result<BatchAnswer> read_batch_answer(std::string_view text) {
  const Error none{ErrorCode::invalid_argument, "is no line of a file of batch answers", "", ""};
  RequestLimits limits;
  limits.max_body_bytes = limits.max_values = limits.max_object_keys =
      std::numeric_limits<size_t>::max();
  Json json;
  if (!parse_body(text, limits, json).ok() || !json.is_object()) return none;
  const auto string_at = [](const Json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  BatchAnswer answer;
  const std::string id = string_at(json, "id");
  const auto key = id.starts_with(kIdPrefix) ? digest_of_hex(id.substr(kIdPrefix.size()))
                                             : std::optional<Digest>();
  if (!key || !json.contains("custom_id") || !json.contains("response")) return none;
  answer.key = *key;
  if (json["custom_id"].is_string()) answer.custom_id = json["custom_id"].get<std::string>();
  const Json& response = json["response"];
  if (!response.is_object() || !response.contains("status_code") || !response.contains("body")) {
    return none;
  }
  answer.has_failed = response["status_code"] != 200;
  answer.model = string_at(response["body"], "model");
  answer.fingerprint = string_at(response["body"], "system_fingerprint");
  return answer;
}

}  // namespace headrace::api
