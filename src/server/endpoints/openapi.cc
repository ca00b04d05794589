// GET /openapi.json.
#include "server/openapi.h"

#include <string>

#include "server/endpoints/endpoints.h"
#include "server/replies.h"

namespace headrace::server {

void openapi(ServerState& /*state*/, ExchangePtr exchange) {
  exchange->reply(json_reply(std::string(openapi_text())));
}

}  // namespace headrace::server
