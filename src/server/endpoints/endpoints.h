// The handlers of all endpoints, each in its own file; routes.cc says what leads to which.
#pragma once

#include <memory>

#include "server/http/exchange.h"
#include "server/server_state.h"

namespace headrace::server {

using ExchangePtr = std::shared_ptr<Exchange>;

void chat_completions(ServerState& state, ExchangePtr exchange);
void completions(ServerState& state, ExchangePtr exchange);
void list_models(ServerState& state, ExchangePtr exchange);
void show_model(ServerState& state, ExchangePtr exchange);
void health(ServerState& state, ExchangePtr exchange);
void livez(ServerState& state, ExchangePtr exchange);
void readyz(ServerState& state, ExchangePtr exchange);

}  // namespace headrace::server
