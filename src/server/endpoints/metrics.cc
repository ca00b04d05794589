// GET /metrics.
#include "server/endpoints/endpoints.h"

namespace headrace::server {

void metrics(ServerState& state, ExchangePtr exchange) {
  HttpReply out;
  out.content_type = "text/plain; version=0.0.4; charset=utf-8";
  const auto models = state.models();
  out.body = state.metrics.text(models.get(), state.http_stats());
  exchange->reply(std::move(out));
}

}  // namespace headrace::server
