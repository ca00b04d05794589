// GET /version, as vLLM has it.
#include <nlohmann/json.hpp>

#include "api/json.h"
#include "server/endpoints/endpoints.h"
#include "server/json_endpoint.h"
#include "server/replies.h"

namespace headrace::server {

void version(ServerState& state, ExchangePtr exchange) {
  exchange->reply(json_reply(json_text(api::Json{{"version", state.options.version}})));
}

}  // namespace headrace::server
