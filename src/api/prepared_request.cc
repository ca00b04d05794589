// See prepared_request.h.
#include "api/prepared_request.h"

namespace headrace::api {

std::string cache_scope(std::string_view api_key, std::string_view salt) {
  // No two pairs join to the same text.
  return std::to_string(api_key.size()) + ':' + std::string(api_key) + std::string(salt);
}

}  // namespace headrace::api
