// Of /v1/completions and /v1/chat/completions; see prepared_request.h.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/fit_prompt.h"
#include "api/prepare_parts.h"

namespace headrace::api {
namespace {

Result<void> fill_completion(const Json& body, const ServedModel& model, PreparedRequest& out) {
  HEADRACE_ASSIGN(CompletionRequest request, parse_completion_request(body, params_context(model)));
  out.params = std::move(request.params);
  out.goes_on = true;
  HEADRACE_TRY(check_model(model, out));
  const EncodeOptions options{request.adds_special, request.parses_special};
  std::vector<std::string> prompt_warnings;
  for (const Prompt& prompt : request.prompts) {
    const std::string what = name_of_prompt(request.prompts, prompt);
    HEADRACE_ASSIGN(auto ids,
                    prompt_ids(prompt, options, model, out.params, what, prompt_warnings));
    if (request.echo) {
      const bool is_whole = prompt.text && !most_prompt_tokens(model, out.params);
      out.echoes.push_back(is_whole ? *prompt.text : model.tokenizer->decode(ids, false));
    }
    Request& made = add_prompt(model, std::move(ids), out);
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

Result<void> fill_chat(const Json& body, const ServedModel& model, const Clock& clock,
                       PreparedRequest& out) {
  HEADRACE_ASSIGN(ChatRequest request, parse_chat_request(body, params_context(model)));
  out.params = std::move(request.params);
  out.goes_on = request.continues_last_message;
  HEADRACE_TRY(check_model(model, out));
  out.warnings.insert(out.warnings.end(), request.warnings.begin(), request.warnings.end());
  HEADRACE_ASSIGN(auto ids, fitting_chat_ids(model, *request.messages, chat_options(request, clock),
                                             "messages", out));
  add_prompt(model, std::move(ids), out);
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

}  // namespace headrace::api
