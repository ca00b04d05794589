// GET /lora-adapters: the adapters that requests may choose, as llama-server lists them.
#include <nlohmann/json.hpp>
#include <string>

#include "api/json.h"
#include "server/endpoints/endpoints.h"
#include "server/json_endpoint.h"
#include "server/replies.h"

namespace headrace::server {

void lora_adapters(ServerState& state, ExchangePtr exchange) {
  const auto found = state.models()->find(query_value(exchange->request().query, "model"));
  if (!found.ok()) return exchange->reply(error_reply(api::api_error(found.error())));
  api::Json out = api::Json::array();
  for (const api::ServedAdapter& adapter : (*found)->served->adapters) {
    // None is used unless a request asks for it.
    out.push_back(
        {{"id", out.size()}, {"name", adapter.name}, {"path", adapter.path}, {"scale", 0.0}});
  }
  exchange->reply(json_reply(json_text(out)));
}

}  // namespace headrace::server
