// GET /v1/models and /v1/models/{name}.
#include <nlohmann/json.hpp>
#include <string>

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

std::string dumped(const api::Json& json) {
  return json.dump(-1, ' ', false, api::Json::error_handler_t::replace);
}

}  // namespace

void list_models(ServerState& state, ExchangePtr exchange) {
  api::Json out = {{"object", "list"}, {"data", api::Json::array()}};
  for (const auto& each : state.models()->all()) out["data"].push_back(model_json(*each));
  exchange->reply(json_reply(dumped(out)));
}

void show_model(ServerState& state, ExchangePtr exchange) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string name = exchange->request().path.substr(kPrefix.size());
  for (const auto& each : state.models()->all()) {
    if (each->name() != name) continue;
    exchange->reply(json_reply(dumped(model_json(*each))));
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
