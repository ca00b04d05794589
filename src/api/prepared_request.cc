// See prepared_request.h.
#include "api/prepared_request.h"

#include <utility>

#include "api/error_json.h"

namespace headrace::api {

Error named_for_request(Error error, const PreparedRequest& request) {
  if (error.where == "max_tokens") error.where = request.params.max_tokens_name;
  return named_for_request(std::move(error), std::string(request.prompt_field));
}

std::string cache_scope(std::string_view api_key, std::string_view salt) {
  // No two pairs join to the same text.
  return std::to_string(api_key.size()) + ':' + std::string(api_key) + std::string(salt);
}

}  // namespace headrace::api
