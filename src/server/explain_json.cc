// See explain_json.h.
#include "server/explain_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "server/explain_bounds.h"

namespace headrace::server {
namespace {

using api::Json;

Json phase(const char* name, double start_ms, double ms) {
  return {{"name", name}, {"start_ms", start_ms}, {"ms", std::max(0.0, ms)}};
}

std::string stop_string_text(const TraceChoice& choice) {
  if (choice.stop_string.empty()) return "one of the request's stop strings came";
  return "the stop string " +
         Json(choice.stop_string).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A sentence a person understands.
std::string why_it_ended(const RequestTrace& trace, const TraceChoice& choice) {
  if (!trace.error.empty()) return "it failed: " + trace.error;
  if (choice.has_stop_string) return stop_string_text(choice);
  switch (choice.reason) {
    case FinishReason::length:
      return "it had as many tokens as it was allowed, or the context was full";
    case FinishReason::cancelled:
      return "it was cancelled: " + trace.end;
    case FinishReason::stop:
      return choice.stop_token >= 0
                 ? fmt::format("the model gave the end token {}", choice.stop_token)
                 : "the model ended it";
  }
  return "";
}

Json step_json(const TimelineEntry& entry, double submitted_ms) {
  Json out = {{"start_ms", submitted_ms + entry.start_ms},
              {"ms", entry.duration_ms},
              {"rows", entry.rows},
              {"step_rows", entry.step_rows},
              {"sequences", entry.step_sequences},
              {"tokens", entry.num_tokens},
              {"sample_ms", entry.sampling_ms}};
  if (entry.num_steps > 1) out["steps"] = entry.num_steps;
  if (entry.num_pauses > 0) out["pauses_before"] = entry.num_pauses;
  if (entry.num_preemptions > 0) out["preemptions_before"] = entry.num_preemptions;
  return out;
}

/// How many others were in its steps.
Json company_json(const Timeline& timeline) {
  double sum = 0;
  int64_t steps = 0;
  int64_t most = 0;
  for (const TimelineEntry& entry : timeline.entries) {
    sum += static_cast<double>(entry.step_sequences);
    steps += entry.num_steps;
    most = std::max(most, entry.step_sequences / std::max(1, entry.num_steps));
  }
  return {{"steps", steps},
          {"sequences_mean", steps > 0 ? sum / static_cast<double>(steps) : 0.0},
          {"sequences_most", most}};
}

Json choice_json(const RequestTrace& trace, const TraceChoice& choice, const ModelBounds* bounds) {
  const RequestStats& stats = choice.stats;
  const double begun = trace.submitted_ms + stats.queue_ms;
  Json out = {{"prompt", choice.prompt},
              {"prompt_tokens", stats.prompt_tokens},
              {"cached_tokens", stats.cached_tokens},
              {"completion_tokens", stats.completion_tokens},
              {"preemptions", stats.num_preemptions},
              {"seed", stats.seed},
              {"ended", why_it_ended(trace, choice)},
              {"bounds", bounds != nullptr ? bounds_json(choice, *bounds) : Json::object()}};
  out["phases"] = {phase("queue", trace.submitted_ms, stats.queue_ms),
                   phase("prefill", begun, stats.prefill_ms),
                   phase("decode", begun + stats.prefill_ms, stats.decode_ms),
                   phase("sampling", begun, stats.sample_ms)};
  if (!choice.timeline) return out;
  out["company"] = company_json(*choice.timeline);
  out["steps"] = Json::array();
  for (const TimelineEntry& entry : choice.timeline->entries) {
    out["steps"].push_back(step_json(entry, trace.submitted_ms));
  }
  return out;
}

Json prompt_json(const std::vector<TokenId>& ids, const ModelEntry& model) {
  Json out = {{"ids", ids}, {"pieces", Json::array()}};
  std::string text;
  for (const TokenId id : ids) {
    std::string piece = model.served->tokenizer->bytes(id);
    text += piece;
    out["pieces"].push_back(std::move(piece));
  }
  out["text"] = text;
  return out;
}

}  // namespace

Json explain_json(const RequestTrace& trace, const ModelEntry* model) {
  Json out = {{"id", trace.id},
              {"request_id", trace.request_id},
              {"path", trace.path},
              {"model", trace.model},
              {"created", trace.created_unix_seconds},
              {"streamed", trace.is_streamed},
              {"end", trace.end},
              {"total_ms", trace.sent_ms},
              {"first_token_ms", trace.first_token_ms},
              {"sent_bytes", trace.sent_bytes}};
  if (!trace.error.empty()) out["error"] = trace.error;
  out["phases"] = {phase("tokenize", 0, trace.tokenized_ms),
                   phase("submit", trace.tokenized_ms, trace.submitted_ms - trace.tokenized_ms),
                   phase("format", 0, trace.format_ms),
                   phase("send", trace.last_token_ms, trace.sent_ms - trace.last_token_ms)};
  out["choices"] = Json::array();
  const ModelBounds* bounds = model != nullptr ? model->bounds.get() : nullptr;
  for (const TraceChoice& choice : trace.choices)
    out["choices"].push_back(choice_json(trace, choice, bounds));
  if (model != nullptr && !trace.prompts.empty()) {
    out["prompts"] = Json::array();
    for (const auto& ids : trace.prompts) out["prompts"].push_back(prompt_json(ids, *model));
  }
  return out;
}

}  // namespace headrace::server
