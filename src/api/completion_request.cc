// See completion_request.h.
#include "api/completion_request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/json_body.h"
#include "headrace/request.h"

namespace headrace::api {
Result<void> append_token_id(const Json& value, const std::string& path, int64_t vocab_size,
                             std::vector<TokenId>& to) {
  const auto id = whole_number(value);
  if (!id || *id < 0 || *id >= vocab_size) {
    return wrong_value(path, "a token id from 0 to " + std::to_string(vocab_size - 1), value);
  }
  to.push_back(static_cast<TokenId>(*id));
  return {};
}

Result<std::vector<TokenId>> read_token_ids(const Json& array, const std::string& path,
                                            int64_t vocab_size) {
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (const Json& element : array) {
    HEADRACE_TRY(
        append_token_id(element, path + "[" + std::to_string(ids.size()) + "]", vocab_size, ids));
  }
  return ids;
}

namespace {

constexpr const char* kPromptKinds =
    "a string, an array of strings, an array of token ids, or an array of such arrays";

Result<Prompt> read_one(const Json& value, const std::string& path, int64_t vocab_size) {
  if (value.is_string()) return Prompt{.text = value.get<std::string>()};
  if (value.is_array()) {
    HEADRACE_ASSIGN(auto ids, read_token_ids(value, path, vocab_size));
    return Prompt{.ids = std::move(ids)};
  }
  return wrong_value(path, "a string or an array of token ids", value);
}

void read_fields(Fields& fields, const ParamsContext& context, CompletionRequest& out) {
  read_generation_params(fields, context, out.params);
  fields.integer("logprobs", out.params.num_logprobs, 0, context.limits.max_logprobs);
  fields.boolean("echo", out.echo);
  fields.boolean("add_special_tokens", out.adds_special);
  fields.boolean("parse_special", out.parses_special);
  std::string suffix;
  if (fields.text("suffix", suffix, context.limits.max_body_bytes) && !suffix.empty()) {
    fields.refuse("suffix", "filling in the middle is not built in");
  }
  const int32_t num_choices = out.params.num_choices;
  int32_t best_of = num_choices;
  if (fields.integer("best_of", best_of, 1, kMaxChoices) && best_of != num_choices) {
    fields.refuse("best_of", "is not built in: expected the value of n, " +
                                 std::to_string(num_choices) + ", found " +
                                 std::to_string(best_of));
  }
}

}  // namespace

Result<std::vector<Prompt>> read_prompts(const Json& value, const ParamsContext& context,
                                         const std::string& name) {
  std::vector<Prompt> prompts;
  const bool is_list =
      value.is_array() && !value.empty() && (value[0].is_string() || value[0].is_array());
  if (!is_list) {
    if (value.is_array() && value.empty()) return wrong_value(name, kPromptKinds, value);
    if (!value.is_array() && !value.is_string()) return wrong_value(name, kPromptKinds, value);
    HEADRACE_ASSIGN(Prompt prompt, read_one(value, name, context.vocab_size));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  if (value.size() > context.limits.max_prompts) {
    return Error{ErrorCode::invalid_argument,
                 "at most " + std::to_string(context.limits.max_prompts) +
                     " of them are allowed in one request, found " + std::to_string(value.size()),
                 name, ""};
  }
  for (const Json& element : value) {
    HEADRACE_ASSIGN(
        Prompt prompt,
        read_one(element, name + "[" + std::to_string(prompts.size()) + "]", context.vocab_size));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<void> check_num_choices(size_t num_prompts, const GenerationParams& params,
                               const RequestLimits& limits) {
  const auto num_choices = num_prompts * static_cast<size_t>(params.num_choices);
  if (num_choices <= static_cast<size_t>(limits.max_choices)) return {};
  return Error{ErrorCode::invalid_argument,
               "prompts times n may be at most " + std::to_string(limits.max_choices) + ", found " +
                   std::to_string(num_choices),
               "n", ""};
}

Result<CompletionRequest> parse_completion_request(const Json& body, const ParamsContext& context) {
  if (!body.is_object()) return wrong_value(std::string(kBody), "an object", body);
  Fields fields(body);
  CompletionRequest out;
  read_fields(fields, context, out);
  const Json* const prompt = fields.find("prompt");
  HEADRACE_TRY(fields.status());
  if (prompt == nullptr) return missing_value("prompt", kPromptKinds);
  HEADRACE_ASSIGN(out.prompts, read_prompts(*prompt, context));
  HEADRACE_TRY(check_params(out.params, context.vocab_size));
  HEADRACE_TRY(check_num_choices(out.prompts.size(), out.params, context.limits));
  out.warnings = fields.unknown();
  return out;
}

}  // namespace headrace::api
