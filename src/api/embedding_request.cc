// See embedding_request.h.
#include "api/embedding_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/fields.h"
#include "api/in_quotes.h"
#include "api/json_body.h"
#include "api/prepare_parts.h"

namespace headrace::api {
namespace {

constexpr const char* kDocumentKinds = "an array of strings, or of objects with a text";

/// How texts are tokenised and cut.
struct TextOptions {
  TextLimits limits;
  bool adds_special = true;
};

void read_text_options(Fields& fields, const ServedModel& model, GenerationParams& params,
                       TextOptions& out) {
  bool truncates = false;
  fields.boolean("truncate", truncates);
  constexpr const char* kName = "truncate_prompt_tokens";
  int64_t& most = params.truncate_prompt_tokens;
  if (fields.integer(kName, most, -1, std::numeric_limits<int64_t>::max()) && most == 0) {
    fields.fail(kName, "-1 (as many as fit) or at least 1", *fields.find(kName));
  }
  out.limits.most_tokens = model.max_context;
  if (truncates || most != 0) out.limits.if_longer = LongTexts::truncate;
  if (most > 0 && (model.max_context <= 0 || most < model.max_context)) {
    out.limits.most_tokens = most;
  }
}

void read_common(Fields& fields, const ServedModel& model, GenerationParams& params) {
  const RequestLimits& limits = model.limits;
  fields.text("model", params.model, limits.max_name_bytes);
  fields.text("user", params.user, limits.max_name_bytes);
  fields.text("cache_salt", params.cache_salt, limits.max_name_bytes);
  fields.integer("priority", params.priority, kMinPriority, kMaxPriority);
  fields.integer("timeout_ms", params.timeout_ms, 0, limits.max_timeout_ms);
  bool streams = false;
  if (fields.boolean("stream", streams) && streams) {
    fields.refuse("stream", "answers are not streamed here", "leave it out");
  }
}

void read_choice(Fields& fields, std::string_view name, std::string_view expected,
                 std::string& to) {
  const Json* const value = fields.find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return fields.fail(name, expected, *value);
  to = value->get<std::string>();
}

void read_embedding_options(Fields& fields, const ServedModel& model, EmbeddingOptions& out) {
  out.normalizes = model.normalizes;
  fields.boolean("normalize", out.normalizes);
  constexpr const char* kFormats = "\"float\" or \"base64\"";
  std::string format = "float";
  read_choice(fields, "encoding_format", kFormats, format);
  out.as_base64 = format == "base64";
  if (format != "float" && !out.as_base64) fields.fail("encoding_format", kFormats, Json(format));
  constexpr const char* kPoolings = "\"mean\", \"cls\" or \"last\"";
  std::string pooling;
  read_choice(fields, "pooling", kPoolings, pooling);
  if (!pooling.empty()) out.pooling = pooling_named(pooling);
  if (!pooling.empty() && !out.pooling) fields.fail("pooling", kPoolings, Json(pooling));
  const int64_t most = std::max<int64_t>(model.embedding_length, 1);
  fields.integer("dimensions", out.dimensions, 1, most);
}

/// The field with its own name and limits.
Result<std::vector<Prompt>> read_inputs(const Json& value, const ServedModel& model) {
  ParamsContext context = params_context(model);
  context.limits.max_prompts = model.limits.max_inputs;
  auto inputs = read_prompts(value, context, "input");
  if (!inputs.ok()) return inputs;
  for (const Prompt& input : *inputs) {
    if (!input.text && input.ids.empty()) {
      return Error{ErrorCode::invalid_argument, "an input has no tokens", "input", ""};
    }
  }
  return inputs;
}

std::string name_of(std::string_view field, size_t index, size_t num) {
  std::string out(field);
  return num == 1 ? out : out + "[" + std::to_string(index) + "]";
}

Result<void> fill_embedding(const Json& body, const ServedModel& model, PreparedRequest& out) {
  if (!body.is_object()) return wrong_value(std::string(kBody), "an object", body);
  Fields fields(body);
  EmbeddingOptions options;
  TextOptions texts;
  read_common(fields, model, out.params);
  read_text_options(fields, model, out.params, texts);
  read_embedding_options(fields, model, options);
  fields.boolean("add_special_tokens", texts.adds_special);
  const Json* const input = fields.find("input");
  HEADRACE_TRY(fields.status());
  if (input == nullptr) return missing_value("input", "a text, or an array of texts");
  HEADRACE_TRY(check_model(model, out));
  HEADRACE_ASSIGN(const auto inputs, read_inputs(*input, model));
  for (size_t i = 0; i < inputs.size(); ++i) {
    HEADRACE_ASSIGN(auto windows, text_windows(inputs[i], texts.adds_special, model, texts.limits,
                                               name_of("input", i, inputs.size())));
    add_embedding(out.params, options, std::move(windows.front()), out);
  }
  out.embedding = std::make_shared<const EmbeddingOptions>(options);
  for (const std::string& text : fields.unknown()) add_warning(out.warnings, text);
  return {};
}

Result<std::string> document_text(const Json& value, const std::string& path) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) {
    const auto text = value.find("text");
    if (text != value.end() && text->is_string()) return text->get<std::string>();
  }
  return wrong_value(path, "a string, or an object with a text", value);
}

Result<std::vector<std::string>> read_documents(const Json& value, const ServedModel& model) {
  if (!value.is_array() || value.empty()) return wrong_value("documents", kDocumentKinds, value);
  if (value.size() > model.limits.max_inputs) {
    return Error{ErrorCode::invalid_argument,
                 "at most " + std::to_string(model.limits.max_inputs) +
                     " documents are allowed in one request, found " + std::to_string(value.size()),
                 "documents", ""};
  }
  std::vector<std::string> out;
  for (const Json& each : value) {
    HEADRACE_ASSIGN(auto text,
                    document_text(each, "documents[" + std::to_string(out.size()) + "]"));
    out.push_back(std::move(text));
  }
  return out;
}

Result<void> check_ranks(const ServedModel& model) {
  if (model.num_classes == 1) return {};
  const std::string why =
      model.num_classes > 1
          ? "the model has a head of " + std::to_string(model.num_classes) + " classes, not one"
          : "the model has no classification head, so it cannot rank";
  return Error{ErrorCode::unsupported, why, "model",
               "serve a cross-encoder (BertForSequenceClassification with one label), or compare "
               "embeddings of /v1/embeddings"};
}

void add_pair(const GenerationParams& params, TextPair pair, PreparedRequest& out) {
  Request& request = out.requests.emplace_back();
  request.kind = RequestKind::score;
  request.prompt = std::move(pair.ids);
  request.second_text = pair.second_text;
  request.priority = params.priority;
  request.timeout_ms = params.timeout_ms;
}

Result<void> fill_ranking(const Json& body, const ServedModel& model, PreparedRequest& out) {
  if (!body.is_object()) return wrong_value(std::string(kBody), "an object", body);
  Fields fields(body);
  RankingOptions options;
  TextOptions texts;
  std::string query;
  bool tells_documents = false;
  read_common(fields, model, out.params);
  read_text_options(fields, model, out.params, texts);
  const bool has_query = fields.text("query", query, model.limits.max_body_bytes);
  fields.integer("top_n", options.most_results, 1, std::numeric_limits<int32_t>::max());
  fields.boolean("return_documents", tells_documents);
  fields.boolean("raw_scores", options.tells_raw_scores);
  const Json* const documents = fields.find("documents");
  HEADRACE_TRY(fields.status());
  if (!has_query) return missing_value("query", "a text");
  if (documents == nullptr) return missing_value("documents", kDocumentKinds);
  HEADRACE_TRY(check_model(model, out));
  HEADRACE_TRY(check_ranks(model));
  HEADRACE_ASSIGN(auto told, read_documents(*documents, model));
  for (size_t i = 0; i < told.size(); ++i) {
    HEADRACE_ASSIGN(auto pair, text_pair(query, told[i], model, texts.limits,
                                         "documents[" + std::to_string(i) + "]"));
    add_pair(out.params, std::move(pair), out);
  }
  if (tells_documents) options.documents = std::move(told);
  out.ranking = std::make_shared<const RankingOptions>(std::move(options));
  for (const std::string& text : fields.unknown()) add_warning(out.warnings, text);
  return {};
}

/// `fill` makes the request; its time is noted.
Result<PreparedRequest> timed(Result<void> (*fill)(const Json&, const ServedModel&,
                                                   PreparedRequest&),
                              const Json& body, const ServedModel& model, const Clock& clock,
                              std::string_view prompt_field) {
  const int64_t begin_ns = clock.now_ns();
  PreparedRequest out;
  out.prompt_field = prompt_field;
  HEADRACE_TRY(fill(body, model, out));
  out.tokenize_ms = static_cast<double>(clock.now_ns() - begin_ns) * 1e-6;
  return out;
}

}  // namespace

void add_embedding(const GenerationParams& params, const EmbeddingOptions& options,
                   TextWindow window, PreparedRequest& out) {
  Request& request = out.requests.emplace_back();
  request.kind = RequestKind::embed;
  request.prompt = std::move(window.ids);
  request.pooling = options.pooling;
  request.adapters = params.adapters.value_or(std::vector<AdapterUse>());
  request.priority = params.priority;
  request.timeout_ms = params.timeout_ms;
  request.cache_scope = cache_scope("", params.cache_salt);
}

Result<PreparedRequest> prepare_embedding(const Json& body, const ServedModel& model,
                                          const Clock& clock) {
  return timed(fill_embedding, body, model, clock, "input");
}

Result<PreparedRequest> prepare_ranking(const Json& body, const ServedModel& model,
                                        const Clock& clock) {
  return timed(fill_ranking, body, model, clock, "documents");
}

}  // namespace headrace::api
