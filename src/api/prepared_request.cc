// See prepared_request.h.
#include "api/prepared_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/chat_prompt.h"
#include "api/chat_request.h"
#include "api/completion_request.h"
#include "api/in_quotes.h"

namespace headrace::api {
namespace {

ParamsContext params_context(const ServedModel& model) {
  return {.limits = model.limits,
          .sampling = model.sampling,
          .stop = model.stop,
          .vocab_size = model.vocab_size,
          .may_stream = model.may_stream};
}

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

Result<void> check_model(const ServedModel& model, PreparedRequest& out) {
  const std::string& asked = out.params.model;
  if (asked.empty() || asked == model.name) return {};
  if (!model.answers_any_name) {
    return Error{ErrorCode::not_found,
                 "there is no model " + in_quotes(asked) + ", only " + in_quotes(model.name),
                 "model", ""};
  }
  out.warnings.push_back("model: answered by " + in_quotes(model.name) + ", not by " +
                         in_quotes(asked));
  return {};
}

/// Whether control tokens are spelled in a text that is not searched for them.
bool spells_control_tokens(const Tokenizer& tokenizer, const std::string& text,
                           const std::vector<TokenId>& ids, bool adds_special) {
  // All known control tokens have one of these; text without them is not tokenised twice.
  if (text.find_first_of("<[") == std::string::npos) return false;
  const auto parsed = tokenizer.encode(text, EncodeOptions{adds_special, true});
  return parsed.ok() && *parsed != ids;
}

Result<std::vector<TokenId>> prompt_ids(const Prompt& prompt, const CompletionRequest& request,
                                        const Tokenizer& tokenizer,
                                        std::vector<std::string>& warnings) {
  if (!prompt.text) return prompt.ids;
  const std::string& text = *prompt.text;
  HEADRACE_ASSIGN(auto ids, tokenizer.encode(
                                text, EncodeOptions{request.adds_special, request.parses_special}));
  if (warnings.empty() && !request.parses_special &&
      spells_control_tokens(tokenizer, text, ids, request.adds_special)) {
    warnings.emplace_back(
        "prompt: control tokens that it spells were taken as plain text; set parse_special to "
        "true, or use /v1/chat/completions");
  }
  return ids;
}

Result<void> fill_completion(const Json& body, const ServedModel& model, PreparedRequest& out) {
  HEADRACE_ASSIGN(CompletionRequest request, parse_completion_request(body, params_context(model)));
  out.params = std::move(request.params);
  out.goes_on = true;
  HEADRACE_TRY(check_model(model, out));
  std::vector<std::string> prompt_warnings;
  for (const Prompt& prompt : request.prompts) {
    HEADRACE_ASSIGN(auto ids, prompt_ids(prompt, request, *model.tokenizer, prompt_warnings));
    if (request.echo) {
      out.echoes.push_back(prompt.text ? *prompt.text : model.tokenizer->decode(ids, false));
    }
    Request& made = out.requests.emplace_back(engine_request(out.params, std::move(ids)));
    fit_default(model, made, out);
    // An echoed prompt's tokens have log-probabilities as the others do.
    if (request.echo) {
      made.num_prompt_logprobs = std::max(made.num_prompt_logprobs, made.num_logprobs);
    }
  }
  for (auto* const more : {&prompt_warnings, &request.warnings}) {
    out.warnings.insert(out.warnings.end(), more->begin(), more->end());
  }
  return {};
}

/// A fault of the template is a fault of the conversation that it was given.
Error of_messages(Error error) {
  constexpr std::string_view kTemplate = "chat template";
  if (!error.where.starts_with(kTemplate)) return error;
  if (error.where != kTemplate) error.message = error.where + ": " + error.message;
  error.where = "messages";
  if (error.code == ErrorCode::resource_exhausted) error.code = ErrorCode::invalid_argument;
  return error;
}

Result<void> fill_chat(const Json& body, const ServedModel& model, const Clock& clock,
                       PreparedRequest& out) {
  HEADRACE_ASSIGN(ChatRequest request, parse_chat_request(body, params_context(model)));
  out.params = std::move(request.params);
  out.goes_on = request.continues_last_message;
  HEADRACE_TRY(check_model(model, out));
  out.warnings.insert(out.warnings.end(), request.warnings.begin(), request.warnings.end());
  if (model.chat_template == nullptr) {
    return Error{ErrorCode::unsupported, "the model has no chat template", "messages",
                 "use /v1/completions, or give the program one with --chat-template FILE"};
  }
  const ChatPromptOptions options{.now_unix_seconds = clock.unix_seconds(),
                                  .adds_generation_prompt = request.adds_generation_prompt,
                                  .continues_last_message = request.continues_last_message,
                                  .variables = request.template_variables.get()};
  auto ids = chat_prompt_ids(*model.chat_template, *model.tokenizer, *request.messages, options);
  if (!ids.ok()) return of_messages(std::move(ids).error());
  fit_default(model, out.requests.emplace_back(engine_request(out.params, std::move(ids).value())),
              out);
  return {};
}

}  // namespace

Result<PreparedRequest> prepare_completion(const Json& body, const ServedModel& model,
                                           const Clock& clock) {
  const int64_t begin_ns = clock.now_ns();
  PreparedRequest out;
  HEADRACE_TRY(fill_completion(body, model, out));
  out.tokenize_ms = static_cast<double>(clock.now_ns() - begin_ns) * 1e-6;
  return out;
}

Result<PreparedRequest> prepare_chat(const Json& body, const ServedModel& model,
                                     const Clock& clock) {
  const int64_t begin_ns = clock.now_ns();
  PreparedRequest out;
  out.prompt_field = "messages";
  HEADRACE_TRY(fill_chat(body, model, clock, out));
  out.tokenize_ms = static_cast<double>(clock.now_ns() - begin_ns) * 1e-6;
  return out;
}

std::string cache_scope(std::string_view api_key, std::string_view salt) {
  // No two pairs join to the same text.
  return std::to_string(api_key.size()) + ':' + std::string(api_key) + std::string(salt);
}

}  // namespace headrace::api
