// The JSON of requests: objects keep the order of their keys, which templates can see. Includes no
// more than names, since the whole header is slow to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace headrace::api {

using Json = nlohmann::ordered_json;

}  // namespace headrace::api
