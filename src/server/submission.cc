// See submission.h.
#include "server/submission.h"

#include <string>
#include <utility>

#include "api/in_quotes.h"
#include "engine/fallback_engine.h"

namespace headrace::server {
namespace {

using Streams = std::vector<std::shared_ptr<Stream>>;

Result<Streams> submit_to(Engine& engine, const api::PreparedRequest& request) {
  Streams out;
  for (const Request& each : request.requests) {
    auto stream = engine.submit(each);
    if (!stream.ok()) return api::named_for_request(std::move(stream).error(), request);
    out.push_back(std::make_shared<Stream>(std::move(stream).value()));
  }
  return out;
}

std::shared_ptr<const api::PreparedRequest> with_warning(const api::PreparedRequest& request,
                                                         const ModelEntry& model,
                                                         const ModelEntry& lighter) {
  auto out = std::make_shared<api::PreparedRequest>(request);
  out->warnings.push_back("model: answered by the lighter model " + api::in_quotes(lighter.name()) +
                          ", for " + api::in_quotes(model.name()) + " has no room now");
  return out;
}

}  // namespace

Result<Submission> submit(ModelEntry& model, std::shared_ptr<const api::PreparedRequest> request) {
  auto streams = submit_to(*model.engine, *request);
  if (streams.ok()) return Submission{&model, std::move(request), std::move(streams).value()};
  const bool is_allowed = model.lighter_for_all || request->params.may_use_lighter_model;
  // The lighter model's adapters are others.
  const bool has_adapters = request->params.adapters && !request->params.adapters->empty();
  if (!is_allowed || has_adapters || !is_want_of_room(streams.error()))
    return std::move(streams).error();
  for (ModelEntry* lighter = model.lighter; lighter != nullptr; lighter = lighter->lighter) {
    auto second = submit_to(*lighter->engine, *request);
    if (!second.ok()) continue;
    model.num_lighter.fetch_add(1);
    return Submission{lighter, with_warning(*request, model, *lighter), std::move(second).value()};
  }
  return std::move(streams).error();
}

}  // namespace headrace::server
