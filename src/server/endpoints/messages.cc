// POST /v1/messages.
#include "api/protocol.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {

void messages(ServerState& state, ExchangePtr exchange) {
  generate(state, *api::protocol_at("/v1/messages"), std::move(exchange));
}

}  // namespace headrace::server
