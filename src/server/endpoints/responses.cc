// POST /v1/responses.
#include "api/protocol.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {

void responses(ServerState& state, ExchangePtr exchange) {
  generate(state, *api::protocol_at("/v1/responses"), std::move(exchange));
}

}  // namespace headrace::server
