// Fields that ask for what is not built; see params_json.h.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/params_json.h"

namespace headrace::api {
namespace {

constexpr const char* kNoConstraint =
    "structured output is not built in, so this constraint cannot be kept";
constexpr const char* kNoTools = "tools are not built in";

/// A constraint is never ignored: the answer would look as if it had been kept.
constexpr std::array<std::string_view, 8> kConstraints = {
    "grammar", "grammar_lazy", "json_schema", "structured_outputs",
    "regex",   "ebnf",         "choice",      "structural_tag"};

/// vLLM's lists of what may be said, and what may not; an empty one asks for nothing.
constexpr std::array<std::string_view, 2> kWordLists = {"allowed_token_ids", "bad_words"};

struct Neutral {
  std::string_view name;
  double value;  ///< at which it does nothing
};

/// Samplers that are not built. What only sets them up has no effect while they are off.
constexpr std::array<Neutral, 2> kSamplers = {{{"dynatemp_range", 0}, {"top_n_sigma", -1}}};
constexpr std::array<std::string_view, 2> kSamplerDetails = {"dynatemp_exponent",
                                                             "parallel_tool_calls"};

void read_constraints(Fields& fields) {
  for (const std::string_view name : kConstraints) {
    const Json* const value = fields.find(name);
    if (value == nullptr || *value == false || *value == "") continue;
    fields.refuse(name, kNoConstraint);
  }
  for (const std::string_view name : kWordLists) {
    const Json* const value = fields.find(name);
    const bool is_empty = value == nullptr || *value == "" || (value->is_array() && value->empty());
    if (!is_empty) {
      fields.refuse(name, "is not built in, so this constraint cannot be kept",
                    "logit_bias can forbid tokens");
    }
  }
  // vLLM's family: guided_json, guided_regex, ...
  for (const auto& entry : fields.object().get_ref<const Json::object_t&>()) {
    if (!entry.first.starts_with("guided_")) continue;
    if (fields.find(entry.first) != nullptr) fields.refuse(entry.first, kNoConstraint);
  }
  const Json* const format = fields.find("response_format");
  if (format == nullptr) return;
  if (!format->is_object()) return fields.fail("response_format", "an object", *format);
  const auto type = format->find("type");
  if (type == format->end()) {
    return fields.fail(missing_value("response_format.type", "\"text\""));
  }
  if (*type == "text") return;
  if (*type == "json_object" || *type == "json_schema") {
    return fields.refuse("response_format", kNoConstraint, "only {\"type\": \"text\"} is known");
  }
  fields.fail("response_format.type", "\"text\", \"json_object\" or \"json_schema\"", *type);
}

void read_tools(Fields& fields) {
  for (const std::string_view name : {"tools", "functions"}) {
    const Json* const value = fields.find(name);
    if (value == nullptr) continue;
    if (!value->is_array()) return fields.fail(name, "an array", *value);
    if (!value->empty()) return fields.refuse(name, kNoTools, "leave them out");
  }
  for (const std::string_view name : {"tool_choice", "function_call"}) {
    const Json* const value = fields.find(name);
    if (value == nullptr || *value == "none" || *value == "auto") continue;
    if (value->is_object() && value->size() == 1 && value->contains("type") &&
        ((*value)["type"] == "auto" || (*value)["type"] == "none")) {
      continue;  // Anthropic's spelling
    }
    if (*value == "required" || value->is_object()) return fields.refuse(name, kNoTools);
    return fields.fail(name, "\"none\", \"auto\", \"required\" or an object", *value);
  }
}

void read_samplers(Fields& fields) {
  for (const Neutral& sampler : kSamplers) {
    const Json* const value = fields.find(sampler.name);
    if (value == nullptr) continue;
    if (!value->is_number()) {
      fields.fail(sampler.name, "a number", *value);
    } else if (value->get<double>() != sampler.value) {
      fields.refuse(sampler.name, "is not built in: expected " +
                                      Json(static_cast<int>(sampler.value)).dump() +
                                      ", which switches it off, found " + found_text(*value));
    }
  }
  for (const std::string_view name : kSamplerDetails) fields.skip(name);
  bool beams = false;
  if (fields.boolean("use_beam_search", beams) && beams) {
    fields.refuse("use_beam_search", "beam search is not built in");
  }
}

}  // namespace

void read_unsupported_fields(Fields& fields) {
  read_constraints(fields);
  read_tools(fields);
  read_samplers(fields);
}

}  // namespace headrace::api
