// See prepare_parts.h.
#include "api/prepare_parts.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "api/fit_prompt.h"
#include "api/in_quotes.h"

namespace headrace::api {
namespace {

constexpr std::string_view kControlTokens = "prompt: control tokens";

Request engine_request(const GenerationParams& params, std::vector<TokenId> prompt) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling = params.sampling;
  request.stop = params.stop;
  request.num_logprobs = params.num_logprobs;
  request.num_prompt_logprobs = params.num_prompt_logprobs;
  request.num_choices = params.num_choices;
  request.priority = params.priority;
  request.timeout_ms = params.timeout_ms;
  request.cache_scope = cache_scope("", params.cache_salt);
  request.may_use_lighter_model = params.may_use_lighter_model;
  request.adapters = params.adapters.value_or(std::vector<AdapterUse>());
  return request;
}

/// Cuts an answer's length that the request did not ask for to what its prompt leaves. A prompt
/// that leaves nothing is for the engine to refuse.
void fit_default(const ServedModel& model, Request& request, PreparedRequest& out) {
  const int64_t room = model.max_context - static_cast<int64_t>(request.prompt.size());
  if (out.params.has_max_tokens || room <= 0 || request.stop.max_tokens <= room) return;
  request.stop.max_tokens = room;
  constexpr std::string_view kWarned = "max_tokens: ";
  const bool is_said = std::any_of(out.warnings.begin(), out.warnings.end(),
                                   [&](const auto& text) { return text.starts_with(kWarned); });
  if (is_said) return;
  out.warnings.push_back(std::string(kWarned) + "at most " + std::to_string(room) +
                         ", not the default " + std::to_string(model.stop.max_tokens) +
                         ", fit the context of " + std::to_string(model.max_context));
}

/// Whether control tokens are spelled in a text that is not searched for them.
bool spells_control_tokens(const Tokenizer& tokenizer, std::string_view text,
                           const std::vector<TokenId>& ids, bool adds_special) {
  // All known control tokens have one of these; text without them is not tokenised twice.
  if (text.find_first_of("<[") == text.npos) return false;
  const auto parsed = tokenizer.encode(text, EncodeOptions{adds_special, true});
  return parsed.ok() && *parsed != ids;
}

/// A fault of the template is a fault of the conversation that it was given.
Error of_messages(Error error, const std::string& field) {
  constexpr std::string_view kTemplate = "chat template";
  if (!error.where.starts_with(kTemplate)) return error;
  if (error.where != kTemplate) error.message = error.where + ": " + error.message;
  error.where = field;
  if (error.code == ErrorCode::resource_exhausted) error.code = ErrorCode::invalid_argument;
  return error;
}

AdapterUse use_of(const ServedModel& model, int32_t adapter) {
  return {adapter, model.adapters[static_cast<size_t>(adapter)].strength};
}

}  // namespace

ParamsContext params_context(const ServedModel& model) {
  return {.limits = model.limits,
          .sampling = model.sampling,
          .stop = model.stop,
          .vocab_size = model.vocab_size,
          .may_stream = model.may_stream,
          .adapters = model.adapters,
          .dry_breakers = model.dry_breakers,
          .breakers = model.breakers != nullptr
                          ? model.breakers
                          : std::make_shared<const BreakerFinder>(model.tokenizer)};
}

Result<void> check_model(const ServedModel& model, PreparedRequest& out) {
  if (out.params.may_use_lighter_model && model.lighter_name.empty()) {
    out.warnings.push_back("allow_lighter_model: " + in_quotes(model.name) +
                           " has no lighter model here");
  }
  const std::string& asked = out.params.model;
  const int32_t adapter = model.find_adapter(asked);
  if (!out.params.adapters) {
    out.params.adapters =
        adapter >= 0 ? std::vector{use_of(model, adapter)} : model.default_adapters;
  }
  if (adapter >= 0) {
    out.answers_as = asked;
    if (*out.params.adapters != std::vector{use_of(model, adapter)}) {
      out.warnings.push_back("lora: chooses other adapters than model does, and is what counts");
    }
  }
  if (asked.empty() || asked == model.name || adapter >= 0) return {};
  if (!model.answers_any_name) {
    return Error{ErrorCode::not_found,
                 "there is no model " + in_quotes(asked) + ", only " + in_quotes(model.name),
                 "model", ""};
  }
  out.warnings.push_back("model: answered by " + in_quotes(model.name) + ", not by " +
                         in_quotes(asked));
  return {};
}

Request& add_prompt(const ServedModel& model, std::vector<TokenId> ids, PreparedRequest& out) {
  Request& made = out.requests.emplace_back(engine_request(out.params, std::move(ids)));
  fit_default(model, made, out);
  return made;
}

Result<void> check_prompt_bytes(const ServedModel& model, size_t num_bytes,
                                const std::string& field) {
  if (model.max_context <= 0 || model.longest_token_bytes <= 0) return {};
  const auto bytes = static_cast<int64_t>(num_bytes);
  const int64_t num_tokens = bytes / model.longest_token_bytes;
  if (num_tokens <= model.max_context) return {};
  return Error{ErrorCode::context_length_exceeded,
               "the prompt of " + std::to_string(bytes) + " bytes is " +
                   std::to_string(num_tokens) + " tokens at least, which leaves no room in the " +
                   "context of " + std::to_string(model.max_context),
               field, "shorten it, or open the model with a larger context"};
}

std::string name_of_prompt(const std::vector<Prompt>& all, const Prompt& prompt) {
  return all.size() == 1 ? "" : "prompt[" + std::to_string(&prompt - all.data()) + "]";
}

Result<std::vector<TokenId>> prompt_ids(const Prompt& prompt, const EncodeOptions& options,
                                        const ServedModel& model, const GenerationParams& params,
                                        std::string_view what, std::vector<std::string>& warnings) {
  const auto most = most_prompt_tokens(model, params);
  if (!prompt.text) {
    std::vector<TokenId> ids = prompt.ids;
    cut_prompt(model, params, false, 0, what, ids, warnings);
    return ids;
  }
  const std::string& text = *prompt.text;
  const Tokenizer& tokenizer = *model.tokenizer;
  if (!most) HEADRACE_TRY(check_prompt_bytes(model, text.size(), "prompt"));
  const std::string_view end = most ? end_of_text(model, text, *most) : text;
  HEADRACE_ASSIGN(auto ids, tokenizer.encode(end, options));
  const bool is_warned = std::any_of(warnings.begin(), warnings.end(), [](const auto& each) {
    return each.starts_with(kControlTokens);
  });
  if (!is_warned && !options.parse_special &&
      spells_control_tokens(tokenizer, end, ids, options.add_special)) {
    warnings.push_back(std::string(kControlTokens) +
                       " that it spells were taken as plain text; set parse_special to true, or "
                       "use /v1/chat/completions");
  }
  const size_t num_bytes = end.size() < text.size() ? text.size() : 0;
  cut_prompt(model, params, options.add_special, num_bytes, what, ids, warnings);
  return ids;
}

ChatPromptOptions chat_options(const ChatRequest& request, const Clock& clock) {
  return {.now_unix_seconds = clock.unix_seconds(),
          .adds_generation_prompt = request.adds_generation_prompt,
          .continues_last_message = request.continues_last_message,
          .variables = request.template_variables.get()};
}

Result<std::vector<TextSegment>> chat_segments(const ServedModel& model, const Json& messages,
                                               const ChatPromptOptions& options,
                                               const std::string& field) {
  if (model.chat_template == nullptr) {
    return Error{ErrorCode::unsupported, "the model has no chat template", field,
                 "use /v1/completions, or give the program one with --chat-template FILE"};
  }
  auto segments = render_chat(*model.chat_template, *model.tokenizer, messages, options);
  if (!segments.ok()) return of_messages(std::move(segments).error(), field);
  return segments;
}

Result<std::vector<TokenId>> chat_ids(const ServedModel& model, const Json& messages,
                                      const ChatPromptOptions& options, const std::string& field) {
  HEADRACE_ASSIGN(auto segments, chat_segments(model, messages, options, field));
  size_t num_bytes = 0;
  for (const TextSegment& each : segments) num_bytes += each.text.size();
  HEADRACE_TRY(check_prompt_bytes(model, num_bytes, field));
  return model.tokenizer->encode(std::span<const TextSegment>(segments), true);
}

void refuse_several(Fields& fields, const GenerationParams& params) {
  if (params.num_choices > 1) {
    fields.refuse("n", "there is one answer here", "use /v1/chat/completions");
  }
  if (params.num_prompt_logprobs >= 0) {
    fields.refuse("prompt_logprobs", "is not told here", "use /v1/completions");
  }
}

}  // namespace headrace::api
