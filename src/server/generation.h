// One request that generates, from its body to the end of its answer. Must not know what its
// protocol's JSON looks like, or sockets.
#pragma once

#include <memory>

#include "api/protocol.h"
#include "server/http/exchange.h"
#include "server/server_state.h"

namespace headrace::server {

/// Answers `exchange`: parses and tokenises the body here, on the worker, submits it, and writes
/// what the engine gives as it comes. A client that goes cancels it.
void generate(ServerState& state, const api::Protocol& protocol,
              std::shared_ptr<Exchange> exchange);

}  // namespace headrace::server
