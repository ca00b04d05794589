// GET /v1/models and /v1/models/{name}.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/json.h"
#include "server/endpoints/endpoints.h"
#include "server/replies.h"

namespace headrace::server {
namespace {

api::Json model_json(const ModelEntry& entry) {
  const ModelInfo& info = entry.engine->model();
  api::Json out;
  out["id"] = entry.name();
  out["object"] = "model";
  out["created"] = entry.loaded_unix_seconds;
  out["owned_by"] = "headrace";
  out["max_model_len"] = entry.engine->max_context();
  out["meta"] = {{"architecture", info.architecture},
                 {"n_ctx_train", info.context_length},
                 {"n_vocab", info.vocab_size},
                 {"n_params", info.num_parameters},
                 {"size", info.weight_bytes},
                 {"has_chat_template", entry.served->chat_template != nullptr}};
  return out;
}

/// An adapter as a model of its own, as vLLM lists it.
api::Json adapter_json(const ModelEntry& entry, const AdapterInfo& adapter) {
  api::Json out = model_json(entry);
  out["id"] = adapter.name;
  out["root"] = adapter.path;
  out["parent"] = entry.name();
  out["meta"]["n_params"] = adapter.num_parameters;
  out["meta"]["size"] = adapter.weight_bytes;
  return out;
}

/// All that a request may name.
std::vector<api::Json> models_json(const ServerState& state) {
  std::vector<api::Json> out;
  for (const auto& each : state.models()->all()) {
    out.push_back(model_json(*each));
    for (const AdapterInfo& adapter : each->engine->model().adapters) {
      out.push_back(adapter_json(*each, adapter));
    }
  }
  return out;
}

std::string dumped(const api::Json& json) {
  return json.dump(-1, ' ', false, api::Json::error_handler_t::replace);
}

}  // namespace

void list_models(ServerState& state, ExchangePtr exchange) {
  const api::Json out = {{"object", "list"}, {"data", models_json(state)}};
  exchange->reply(json_reply(dumped(out)));
}

void show_model(ServerState& state, ExchangePtr exchange) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string name = exchange->request().path.substr(kPrefix.size());
  for (const api::Json& each : models_json(state)) {
    if (each["id"] != name) continue;
    exchange->reply(json_reply(dumped(each)));
    return;
  }
  api::ApiError missing;
  missing.status = 404;
  missing.message = "There is no model of that name; GET /v1/models lists those there are.";
  missing.type = "invalid_request_error";
  missing.code = "model_not_found";
  missing.param = "model";
  exchange->reply(error_reply(missing));
}

}  // namespace headrace::server
