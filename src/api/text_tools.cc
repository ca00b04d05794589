// See text_tools.h.
#include "api/text_tools.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/anthropic_request.h"
#include "api/fields.h"
#include "api/fit_prompt.h"
#include "api/json_body.h"
#include "api/json_writer.h"
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

/// The piece as text, or where it is no UTF-8 the array of its bytes.
void append_piece(std::string& out, TokenId id, const Tokenizer& tokenizer) {
  const std::string bytes = tokenizer.bytes(id);
  if (text::replace_invalid(bytes) == bytes) return append_json_string(out, bytes);
  char before = '[';
  for (const char c : bytes) {
    out += before;
    out += std::to_string(static_cast<unsigned char>(c));
    before = ',';
  }
  out += ']';
}

void append_token(std::string& out, TokenId id, const Tokenizer& tokenizer, bool with_piece) {
  if (!with_piece) {
    out += std::to_string(id);
    return;
  }
  out += "{\"id\":";
  out += std::to_string(id);
  out += ",\"piece\":";
  append_piece(out, id, tokenizer);
  out += '}';
}

/// How long append_each() makes a text longer at most. A text that grew by itself would be there
/// twice for a while.
template <class Append>
size_t num_bytes_of_each(const std::vector<TokenId>& ids, const Append& append) {
  std::string one;
  size_t num_bytes = 2;
  for (const TokenId id : ids) {
    one.clear();
    append(one, id);
    num_bytes += one.size() + 1;
  }
  return num_bytes;
}

/// An array of what `append` writes of each.
template <class List, class Append>
void append_each(std::string& out, const List& list, const Append& append) {
  out += '[';
  bool is_first = true;
  for (const auto& each : list) {
    if (!std::exchange(is_first, false)) out += ',';
    append(out, each);
  }
  out += ']';
}

/// Begins with a comma, and ends the object.
std::string warnings_end(const std::vector<std::string>& warnings) {
  std::string out = ",\"warnings\":";
  append_each(out, warnings, append_json_string);
  return out + '}';
}

std::string tokens_text(const std::vector<TokenId>& ids, const Shape& shape,
                        const ServedModel& model, const std::vector<std::string>& warnings) {
  const Tokenizer& tokenizer = *model.tokenizer;
  const auto token = [&](std::string& to, TokenId id) {
    append_token(to, id, tokenizer, shape.with_pieces);
  };
  const auto piece = [&](std::string& to, TokenId id) {
    append_json_string(to, tokenizer.piece(id));
  };
  constexpr std::string_view kTokens = "{\"tokens\":";
  constexpr std::string_view kStrings = ",\"token_strs\":";
  std::string end = ",\"count\":" + std::to_string(ids.size()) + ",\"max_model_len\":";
  end += model.max_context > 0 ? std::to_string(model.max_context) : "null";
  const std::string last = warnings_end(warnings);
  std::string out;
  out.reserve(kTokens.size() + num_bytes_of_each(ids, token) + end.size() + kStrings.size() +
              (shape.with_strings ? num_bytes_of_each(ids, piece) : 0) + last.size());
  out += kTokens;
  append_each(out, ids, token);
  out += end;
  if (shape.with_strings) {
    out += kStrings;
    append_each(out, ids, piece);
  }
  out += last;
  return out;
}

/// A chat request without what is about generation.
Result<std::string> tokenize_messages(const Json& body, const ServedModel& model,
                                      const Clock& clock) {
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
  return tokens_text(ids, shape, model, named.warnings);
}

}  // namespace

Result<std::string> tokenize(const Json& body, const ServedModel& model, const Clock& clock) {
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
  return tokens_text(*ids, shape, model, warnings);
}

Result<std::string> detokenize(const Json& body, const ServedModel& model) {
  HEADRACE_TRY(check_object(body));
  Fields fields(body);
  std::vector<std::string> warnings;
  HEADRACE_TRY(check_name(fields, model, warnings));
  const Json* const tokens = fields.find("tokens");
  if (tokens == nullptr) return missing_value("tokens", "an array of token ids");
  if (!tokens->is_array()) return wrong_value("tokens", "an array of token ids", *tokens);
  HEADRACE_ASSIGN(const auto ids, read_token_ids(*tokens, "tokens", model.vocab_size));
  for (std::string& unknown : fields.unknown()) warnings.push_back(std::move(unknown));
  std::string text;
  append_json_string(text, model.tokenizer->decode(ids, false));
  const std::string end = warnings_end(warnings);
  constexpr std::string_view kBegin = "{\"content\":";
  constexpr std::string_view kAgain = ",\"prompt\":";
  std::string out;
  out.reserve(2 * text.size() + kBegin.size() + kAgain.size() + end.size());
  out.append(kBegin).append(text).append(kAgain).append(text).append(end);
  return out;
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
