// POST /v1/embeddings.
#include "api/protocol.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {

void embeddings(ServerState& state, ExchangePtr exchange) {
  generate(state, *api::protocol_at("/v1/embeddings"), std::move(exchange));
}

}  // namespace headrace::server
