// GET /props and /slots: what is served, and who runs.
#include <nlohmann/json.hpp>
#include <string>

#include "api/json.h"
#include "server/endpoints/endpoints.h"
#include "server/json_endpoint.h"
#include "server/replies.h"

namespace headrace::server {
namespace {

api::Json sampling_json(const api::ServedModel& served) {
  const SamplingParams& sampling = served.sampling;
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"typical_p", sampling.typical_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"max_tokens", served.stop.max_tokens}};
}

/// The model of the query, or null after the error was answered.
ModelEntry* asked_of(const ModelSet& models, Exchange& exchange) {
  auto found = models.find(query_value(exchange.request().query, "model"));
  if (found.ok()) return *found;
  exchange.reply(error_reply(api::api_error(found.error())));
  return nullptr;
}

}  // namespace

void props(ServerState& state, ExchangePtr exchange) {
  const auto models = state.models();
  const ModelEntry* model = asked_of(*models, *exchange);
  if (model == nullptr) return;
  const api::ServedModel& served = *model->served;
  api::Json out;
  out["model_alias"] = model->name();
  out["model_path"] = model->name();
  out["chat_template"] =
      served.chat_template != nullptr ? api::Json(model->chat_template) : api::Json();
  out["total_slots"] = model->max_sequences;
  out["default_generation_settings"] = {{"n_ctx", model->engine->max_context()},
                                        {"params", sampling_json(served)}};
  out["build_info"] = "headrace " + state.options.version;
  out["system_fingerprint"] = served.fingerprint;
  exchange->reply(json_reply(json_text(out)));
}

void slots(ServerState& state, ExchangePtr exchange) {
  const auto models = state.models();
  const ModelEntry* model = asked_of(*models, *exchange);
  if (model == nullptr) return;
  const EngineStats stats = model->engine->stats();
  api::Json out = api::Json::array();
  for (int64_t i = 0; i < model->max_sequences; ++i) {
    out.push_back({{"id", i},
                   {"n_ctx", model->engine->max_context()},
                   {"is_processing", i < stats.num_running}});
  }
  exchange->reply(json_reply(json_text(out)));
}

}  // namespace headrace::server
