// POST /v1/completions.
#include "api/protocol.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {

void completions(ServerState& state, ExchangePtr exchange) {
  generate(state, *api::protocol_at("/v1/completions"), std::move(exchange));
}

}  // namespace headrace::server
