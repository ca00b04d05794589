// The handlers of all endpoints, each in its own file; routes.cc says what leads to which.
#pragma once

#include <memory>

#include "server/http/exchange.h"
#include "server/server_state.h"

namespace headrace::server {

using ExchangePtr = std::shared_ptr<Exchange>;

// That run a model: each one's JSON is a Protocol of api/.
void chat_completions(ServerState& state, ExchangePtr exchange);
void completions(ServerState& state, ExchangePtr exchange);
void responses(ServerState& state, ExchangePtr exchange);
void messages(ServerState& state, ExchangePtr exchange);
void llama_completion(ServerState& state, ExchangePtr exchange);
void embeddings(ServerState& state, ExchangePtr exchange);
void rerank(ServerState& state, ExchangePtr exchange);

void count_tokens(ServerState& state, ExchangePtr exchange);
void tokenize(ServerState& state, ExchangePtr exchange);
void detokenize(ServerState& state, ExchangePtr exchange);
void apply_template(ServerState& state, ExchangePtr exchange);
void list_models(ServerState& state, ExchangePtr exchange);
void show_model(ServerState& state, ExchangePtr exchange);
void lora_adapters(ServerState& state, ExchangePtr exchange);
void props(ServerState& state, ExchangePtr exchange);
void slots(ServerState& state, ExchangePtr exchange);
void version(ServerState& state, ExchangePtr exchange);

void health(ServerState& state, ExchangePtr exchange);
void livez(ServerState& state, ExchangePtr exchange);
void readyz(ServerState& state, ExchangePtr exchange);
void metrics(ServerState& state, ExchangePtr exchange);
void explain(ServerState& state, ExchangePtr exchange);
void openapi(ServerState& state, ExchangePtr exchange);
void dashboard_data(ServerState& state, ExchangePtr exchange);
void page(ServerState& state, ExchangePtr exchange);

}  // namespace headrace::server
