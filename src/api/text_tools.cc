// See text_tools.h.
#include "api/text_tools.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/anthropic_request.h"
#include "api/fields.h"
#include "api/fit_prompt.h"
#include "api/json_body.h"
#include "api/prepare_parts.h"
#include "text/unicode.h"

namespace headrace::api {
namespace {

Result<void> check_object(const Json& body) {
  if (body.is_object()) return {};
  return wrong_value(std::string(kBody), "an object", body);
}

/// The model's name, which may be any that a request may have.
Result<void> check_name(Fields& fields, const ServedModel& model,
                        std::vector<std::string>& warnings) {
  PreparedRequest named;
  fields.text("model", named.params.model, model.limits.max_name_bytes);
  HEADRACE_TRY(fields.status());
  HEADRACE_TRY(check_model(model, named));
  warnings = std::move(named.warnings);
  return {};
}

struct Shape {
  bool with_pieces = false;
  bool with_strings = false;
};

Json piece_json(TokenId id, const Tokenizer& tokenizer) {
  std::string bytes = tokenizer.bytes(id);
  if (text::replace_invalid(bytes) == bytes) return bytes;
  Json out = Json::array();
  for (const char c : bytes) out.push_back(static_cast<unsigned char>(c));
  return out;
}

Json tokens_json(const std::vector<TokenId>& ids, const Shape& shape, const ServedModel& model,
                 std::vector<std::string> warnings) {
  const Tokenizer& tokenizer = *model.tokenizer;
  std::vector<Json> tokens;
  std::vector<Json> strings;
  for (const TokenId id : ids) {
    tokens.push_back(shape.with_pieces ? Json{{"id", id}, {"piece", piece_json(id, tokenizer)}}
                                       : Json(id));
    if (shape.with_strings) strings.emplace_back(std::string(tokenizer.piece(id)));
  }
  Json out = {{"tokens", std::move(tokens)}, {"count", ids.size()}};
  out["max_model_len"] = model.max_context > 0 ? Json(model.max_context) : Json();
  if (shape.with_strings) out["token_strs"] = std::move(strings);
  out["warnings"] = std::move(warnings);
  return out;
}

/// A chat request without what is about generation.
Result<Json> tokenize_messages(const Json& body, const ServedModel& model, const Clock& clock) {
  Shape shape;
  Json chat = body;
  {
    Fields fields(body);
    fields.boolean("with_pieces", shape.with_pieces);
    fields.boolean("return_token_strs", shape.with_strings);
    HEADRACE_TRY(fields.status());
    for (const char* const name : {"with_pieces", "return_token_strs", "add_special",
                                   "add_special_tokens", "parse_special"}) {
      chat.erase(name);
    }
  }
  HEADRACE_ASSIGN(ChatRequest request, parse_chat_request(chat, params_context(model)));
  PreparedRequest named;
  named.params = request.params;
  HEADRACE_TRY(check_model(model, named));
  HEADRACE_ASSIGN(auto ids, fitting_chat_ids(model, *request.messages, chat_options(request, clock),
                                             "messages", named));
  named.warnings.insert(named.warnings.end(), request.warnings.begin(), request.warnings.end());
  return tokens_json(ids, shape, model, std::move(named.warnings));
}

}  // namespace

Result<Json> tokenize(const Json& body, const ServedModel& model, const Clock& clock) {
  HEADRACE_TRY(check_object(body));
  if (body.contains("messages")) return tokenize_messages(body, model, clock);
  Fields fields(body);
  std::vector<std::string> warnings;
  HEADRACE_TRY(check_name(fields, model, warnings));
  Shape shape;
  fields.boolean("with_pieces", shape.with_pieces);
  fields.boolean("return_token_strs", shape.with_strings);
  // The two servers' own defaults.
  const bool is_prompt = !body.contains("content") && body.contains("prompt");
  EncodeOptions options{.add_special = is_prompt, .parse_special = true};
  fields.boolean("add_special", options.add_special);
  fields.boolean("add_special_tokens", options.add_special);
  fields.boolean("parse_special", options.parse_special);
  std::string text;
  const std::string field = is_prompt ? "prompt" : "content";
  const bool has_text =
      fields.text(is_prompt ? "prompt" : "content", text, model.limits.max_body_bytes);
  HEADRACE_TRY(fields.status());
  if (!has_text) return missing_value(field, "a string");
  auto ids = model.tokenizer->encode(text, options);
  if (!ids.ok()) return std::move(ids).error().at(field);
  for (std::string& unknown : fields.unknown()) warnings.push_back(std::move(unknown));
  return tokens_json(*ids, shape, model, std::move(warnings));
}

Result<Json> detokenize(const Json& body, const ServedModel& model) {
  HEADRACE_TRY(check_object(body));
  Fields fields(body);
  std::vector<std::string> warnings;
  HEADRACE_TRY(check_name(fields, model, warnings));
  const Json* const tokens = fields.find("tokens");
  if (tokens == nullptr) return missing_value("tokens", "an array of token ids");
  if (!tokens->is_array()) return wrong_value("tokens", "an array of token ids", *tokens);
  HEADRACE_ASSIGN(const auto ids, read_token_ids(*tokens, "tokens", model.vocab_size));
  const std::string text = text::replace_invalid(model.tokenizer->decode(ids, false));
  for (std::string& unknown : fields.unknown()) warnings.push_back(std::move(unknown));
  return Json{{"content", text}, {"prompt", text}, {"warnings", std::move(warnings)}};
}

Result<Json> apply_template(const Json& body, const ServedModel& model, const Clock& clock) {
  HEADRACE_ASSIGN(ChatRequest request, parse_chat_request(body, params_context(model)));
  PreparedRequest named;
  named.params.model = request.params.model;
  HEADRACE_TRY(check_model(model, named));
  HEADRACE_ASSIGN(const auto segments, chat_segments(model, *request.messages,
                                                     chat_options(request, clock), "messages"));
  std::string prompt;
  for (const TextSegment& segment : segments) prompt += segment.text;
  named.warnings.insert(named.warnings.end(), request.warnings.begin(), request.warnings.end());
  return Json{{"prompt", std::move(prompt)}, {"warnings", std::move(named.warnings)}};
}

Result<Json> count_tokens(const Json& body, const ServedModel& model, const Clock& clock) {
  HEADRACE_ASSIGN(const PreparedRequest request, prepare_anthropic_count(body, model, clock));
  return Json{{"input_tokens", request.requests[0].prompt.size()}, {"warnings", request.warnings}};
}

}  // namespace headrace::api
