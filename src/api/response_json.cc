// See response_json.h.
#include "api/response_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/logprobs_json.h"
#include "base/check.h"

namespace headrace::api {
namespace {

/// Three decimals; what was divided by nothing is 0.
double rounded(double value) {
  return std::isfinite(value) ? std::round(value * 1e3) / 1e3 : 0;
}

double per_second(int64_t count, double ms) {
  return ms > 0 ? 1e3 * static_cast<double>(count) / ms : 0;
}

std::string_view end_name(ChoiceEnd end) {
  HEADRACE_CHECK(end != ChoiceEnd::running);
  return end == ChoiceEnd::stop ? "stop" : "length";
}

/// vLLM's: which of several things ended it.
Json stop_reason(const Choice& choice, const PreparedRequest& request) {
  if (choice.stop_string) return *choice.stop_string;
  for (const TokenId id : request.params.stop.stop_token_ids) {
    if (id == choice.stop_token) return id;
  }
  return nullptr;
}

Json completion_choice(const PreparedRequest& request, const Answer& answer, size_t i,
                       const ServedModel& model) {
  const Choice& choice = answer.choices()[i];
  const size_t prompt = answer.prompt_of(i);
  const std::string* const echo = request.echoes.empty() ? nullptr : &request.echoes[prompt];
  Json out = {{"index", i}, {"text", (echo != nullptr ? *echo : "") + choice.text}};
  const int32_t num_logprobs = request.params.num_logprobs;
  out["logprobs"] = nullptr;
  if (num_logprobs >= 0) {
    out["logprobs"] =
        completion_logprobs(choice, echo, answer.prompt(prompt), num_logprobs, model.tokenizer);
  }
  out["finish_reason"] = end_name(choice.end);
  out["stop_reason"] = stop_reason(choice, request);
  if (request.params.num_prompt_logprobs >= 0) {
    out["prompt_logprobs"] = prompt_logprobs(answer.prompt(prompt),
                                             request.params.num_prompt_logprobs, *model.tokenizer);
  }
  return out;
}

Json chat_choice(const PreparedRequest& request, const Answer& answer, size_t i,
                 const ServedModel& model) {
  const Choice& choice = answer.choices()[i];
  Json out = {{"index", i}};
  out["message"] = {{"role", "assistant"}, {"content", choice.text}};
  const int32_t num_logprobs = request.params.num_logprobs;
  out["logprobs"] = nullptr;
  if (num_logprobs >= 0) out["logprobs"] = chat_logprobs(choice, num_logprobs, *model.tokenizer);
  out["finish_reason"] = end_name(choice.end);
  out["stop_reason"] = stop_reason(choice, request);
  return out;
}

}  // namespace

std::string_view id_prefix(Endpoint endpoint) {
  return endpoint == Endpoint::completions ? "cmpl-" : "chatcmpl-";
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

Json timings_json(const AnswerTimes& times, int64_t cached_tokens,
                  std::optional<double> tokenize_ms) {
  Json out = {{"queue_ms", rounded(times.queue_ms)}};
  if (tokenize_ms) out["tokenize_ms"] = rounded(*tokenize_ms);
  out["prompt_n"] = times.prompt_n;
  out["prompt_ms"] = rounded(times.prompt_ms);
  out["prompt_per_second"] = rounded(per_second(times.prompt_n, times.prompt_ms));
  out["cache_n"] = cached_tokens;
  out["predicted_n"] = times.predicted_n;
  out["predicted_ms"] = rounded(times.predicted_ms);
  out["predicted_per_second"] = rounded(per_second(times.decoded_n, times.predicted_ms));
  out["sample_ms"] = rounded(times.sample_ms);
  return out;
}

Json timings_json(const RequestStats& stats) {
  AnswerTimes times;
  times.add(stats);
  times.prompt_n = stats.prompt_tokens - stats.cached_tokens;
  return timings_json(times, stats.cached_tokens, std::nullopt);
}

std::string response_json(const ResponseHead& head, const PreparedRequest& request,
                          const Answer& answer, const ServedModel& model) {
  HEADRACE_CHECK(!answer.has_failed());
  const bool is_chat = request.endpoint == Endpoint::chat_completions;
  const std::string& answered_by = answer.answered_by();
  Json out = {{"id", head.id},
              {"object", is_chat ? "chat.completion" : "text_completion"},
              {"created", head.created_unix_seconds},
              {"model", answered_by.empty() ? model.name : answered_by},
              {"system_fingerprint", model.fingerprint}};
  Json choices = Json::array();
  for (size_t i = 0; i < answer.choices().size(); ++i) {
    choices.push_back(is_chat ? chat_choice(request, answer, i, model)
                              : completion_choice(request, answer, i, model));
  }
  out["choices"] = std::move(choices);
  if (is_chat && request.params.num_prompt_logprobs >= 0) {
    out["prompt_logprobs"] =
        prompt_logprobs(answer.prompt(0), request.params.num_prompt_logprobs, *model.tokenizer);
  }
  const Usage usage = answer.usage();
  out["usage"] = usage_json(usage);
  out["timings"] = timings_json(answer.times(), usage.cached_tokens, request.tokenize_ms);
  out["warnings"] = request.warnings;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headrace::api
