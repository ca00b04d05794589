// See json_endpoint.h.
#include "server/json_endpoint.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/json_body.h"
#include "server/replies.h"
#include "server/route.h"

namespace headrace::server {
namespace {

Result<std::string> made(const ModelSet& models, Exchange& exchange, const MakeJson& make) {
  api::Json body;
  HEADRACE_TRY(api::parse_body(exchange.take_body(), models.first().served->limits, body));
  HEADRACE_ASSIGN(ModelEntry * model, named_model(models, body));
  return make(body, *model);
}

}  // namespace

Result<ModelEntry*> named_model(const ModelSet& models, const api::Json& body) {
  if (!body.is_object()) return models.find("");
  const auto found = body.find("model");
  return models.find(found != body.end() && found->is_string() ? found->get<std::string>() : "");
}

void answer_json(ServerState& state, const std::shared_ptr<Exchange>& exchange,
                 const MakeJson& make) {
  const auto models = state.models();
  auto out = made(*models, *exchange, make);
  if (out.ok()) {
    exchange->reply(json_reply(std::move(*out)));
    return;
  }
  exchange->reply(error_reply(api::api_error(out.error()), error_shape(exchange->request().path)));
}

std::string query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view field = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = std::min(field.find('='), field.size());
    if (field.substr(0, equals) != name) continue;
    std::string path;
    std::string rest;
    const std::string value = "/" + std::string(field.substr(std::min(equals + 1, field.size())));
    return split_target(value, path, rest) ? path.substr(1) : "";
  }
  return "";
}

Result<std::string> json_text(const Result<api::Json>& json) {
  if (!json.ok()) return json.error();
  return json_text(*json);
}

std::string json_text(const api::Json& json) {
  return json.dump(-1, ' ', false, api::Json::error_handler_t::replace);
}

}  // namespace headrace::server
