// POST /v1/rerank.
#include "api/protocol.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {

void rerank(ServerState& state, ExchangePtr exchange) {
  generate(state, *api::protocol_at("/v1/rerank"), std::move(exchange));
}

}  // namespace headrace::server
