// The description of all endpoints for programs: openapi.json, which a test compares with
// routes.cc. Must not know what the endpoints do.
#pragma once

#include <string_view>

namespace headrace::server {

/// OpenAPI 3.1, as JSON.
std::string_view openapi_text();

}  // namespace headrace::server
