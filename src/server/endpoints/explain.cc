// GET /explain/{id}: where the time of a request went.
#include <string>

#include "server/endpoints/endpoints.h"
#include "server/explain_json.h"
#include "server/json_endpoint.h"
#include "server/replies.h"

namespace headrace::server {

void explain(ServerState& state, ExchangePtr exchange) {
  constexpr std::string_view kPrefix = "/explain/";
  const HttpRequest& request = exchange->request();
  const ApiKey* key = key_of(state, request);
  const auto trace = state.traces.find(std::string_view(request.path).substr(kPrefix.size()),
                                       key != nullptr ? key->owner : "");
  if (!trace) {
    exchange->reply(error_reply(
        404, "There is no such request among the last 256, or it was made with another key."));
    return;
  }
  const auto models = state.models();
  const auto model = models->find(trace->model);
  exchange->reply(json_reply(json_text(explain_json(*trace, model.ok() ? *model : nullptr))));
}

}  // namespace headrace::server
