// JSON objects of untrusted files. Must not know what is in them.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

/// A JSON object of at most `most_bytes`, nested at most 64 deep. Error (corrupt_data) with `file`.
Result<nlohmann::json> parse_json_object(std::string_view text, std::string_view file,
                                         size_t most_bytes);

}  // namespace headrace
