// POST /tokenize, /detokenize and /apply-template.
#include "api/text_tools.h"

#include <nlohmann/json.hpp>

#include "server/endpoints/endpoints.h"
#include "server/json_endpoint.h"

namespace headrace::server {

void tokenize(ServerState& state, ExchangePtr exchange) {
  answer_json(state, exchange, [&](const api::Json& body, const ModelEntry& model) {
    return api::tokenize(body, *model.served, state.clock);
  });
}

void detokenize(ServerState& state, ExchangePtr exchange) {
  answer_json(state, exchange, [](const api::Json& body, const ModelEntry& model) {
    return api::detokenize(body, *model.served);
  });
}

void apply_template(ServerState& state, ExchangePtr exchange) {
  answer_json(state, exchange, [&](const api::Json& body, const ModelEntry& model) {
    return json_text(api::apply_template(body, *model.served, state.clock));
  });
}

}  // namespace headrace::server
