// POST /v1/messages/count_tokens.
#include <nlohmann/json.hpp>

#include "api/text_tools.h"
#include "server/endpoints/endpoints.h"
#include "server/json_endpoint.h"

namespace headrace::server {

void count_tokens(ServerState& state, ExchangePtr exchange) {
  const auto make = [&](const api::Json& body, const ModelEntry& model) {
    return json_text(api::count_tokens(body, *model.served, state.clock));
  };
  answer_json(state, exchange, make);
}

}  // namespace headrace::server
