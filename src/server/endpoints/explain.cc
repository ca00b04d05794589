// GET /explain/{id}: where the time of a request went.
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "server/endpoints/endpoints.h"
#include "server/explain_json.h"
#include "server/json_endpoint.h"
#include "server/replies.h"

namespace headrace::server {

namespace {

/// In which a request whose client has all of its answer is over.
constexpr std::chrono::milliseconds kSoon{20};

/// `again`: it may not be over yet.
void explain_now(ServerState& state, ExchangePtr exchange, bool again) {
  constexpr std::string_view kPrefix = "/explain/";
  const HttpRequest& request = exchange->request();
  const ApiKey* key = key_of(state, request);
  const auto trace = state.traces.find(std::string_view(request.path).substr(kPrefix.size()),
                                       key != nullptr ? key->owner : "");
  if (!trace && again) {
    Exchange& place = *exchange;
    place.post_after(kSoon, [&state, exchange = std::move(exchange)]() mutable {
      explain_now(state, std::move(exchange), false);
    });
    return;
  }
  if (!trace) {
    exchange->reply(error_reply(
        404, "There is no such request among the last 256, or it was made with another key."));
    return;
  }
  const auto models = state.models();
  const auto model = models->find(trace->model);
  exchange->reply(json_reply(json_text(explain_json(*trace, model.ok() ? *model : nullptr))));
}

}  // namespace

void explain(ServerState& state, ExchangePtr exchange) {
  const bool may_come = state.admission.num_inside() > 0;
  explain_now(state, std::move(exchange), may_come);
}

}  // namespace headrace::server
