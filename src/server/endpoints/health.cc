// GET /health, /livez and /readyz. Answered on the I/O thread, which waits for nobody.
#include <chrono>

#include "server/endpoints/endpoints.h"
#include "server/replies.h"

namespace headrace::server {
namespace {

/// Why the server should get no requests now, or "".
std::string fault_of(const ServerState& state) {
  const auto models = state.models();
  if (!models) return "Loading model";
  if (state.is_draining) return "The server is shutting down.";
  for (const auto& each : models->all()) {
    if (each->engine->stalled_for() > state.options.stuck_after) {
      return "A step of the engine is stuck.";
    }
  }
  return "";
}

void answer(const ServerState& state, Exchange& exchange) {
  if (const std::string fault = fault_of(state); !fault.empty()) {
    exchange.reply(unavailable_reply(fault, 1));
  } else {
    exchange.reply(json_reply(R"({"status":"ok"})"));
  }
}

}  // namespace

void health(ServerState& state, ExchangePtr exchange) {
  answer(state, *exchange);
}

void readyz(ServerState& state, ExchangePtr exchange) {
  answer(state, *exchange);
}

void livez(ServerState& /*state*/, ExchangePtr exchange) {
  exchange->reply(json_reply(R"({"status":"ok"})"));
}

}  // namespace headrace::server
