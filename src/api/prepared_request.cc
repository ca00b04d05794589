// See prepared_request.h.
#include "api/prepared_request.h"

#include <algorithm>
#include <utility>

#include "api/error_json.h"

namespace headrace::api {

Error named_for_request(Error error, const PreparedRequest& request) {
  if (error.where == "max_tokens") error.where = request.params.max_tokens_name;
  return named_for_request(std::move(error), std::string(request.prompt_field));
}

std::shared_ptr<const ServedModel> answering_model(const PreparedRequest& request,
                                                   std::shared_ptr<const ServedModel> model) {
  if (request.answers_as.empty()) return model;
  auto out = std::make_shared<ServedModel>(*model);
  out->name = request.answers_as;
  return out;
}

int32_t ServedModel::find_adapter(std::string_view adapter) const {
  const auto found = std::ranges::find(adapters, adapter, &ServedAdapter::name);
  return found == adapters.end() ? -1 : static_cast<int32_t>(found - adapters.begin());
}

std::string cache_scope(std::string_view api_key, std::string_view salt) {
  // No two pairs join to the same text.
  return std::to_string(api_key.size()) + ':' + std::string(api_key) + std::string(salt);
}

}  // namespace headrace::api
