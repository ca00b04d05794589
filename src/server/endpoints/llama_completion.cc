// POST /completion.
#include "api/protocol.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {

void llama_completion(ServerState& state, ExchangePtr exchange) {
  generate(state, *api::protocol_at("/completion"), std::move(exchange));
}

}  // namespace headrace::server
