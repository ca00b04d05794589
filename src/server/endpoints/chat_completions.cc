// POST /v1/chat/completions.
#include "api/protocol.h"
#include "server/endpoints/endpoints.h"
#include "server/generation.h"

namespace headrace::server {

void chat_completions(ServerState& state, ExchangePtr exchange) {
  generate(state, *api::protocol_at("/v1/chat/completions"), std::move(exchange));
}

}  // namespace headrace::server
