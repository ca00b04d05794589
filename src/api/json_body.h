// From the bytes of a body to JSON, within limits. Must not know what the fields mean.
#pragma once

#include <string>
#include <string_view>

#include "api/json.h"
#include "api/limits.h"
#include "headrace/result.h"

namespace headrace::api {

/// The `where` of an Error that is about the body as a whole.
inline constexpr std::string_view kBody = "body";

/// Parses one JSON value into `out`, in time and memory in proportion to its bytes. After an error
/// `out` holds what came before it. Errors (invalid_argument, `where` is the path of the field that
/// was being read, as in "messages[2].content"): no JSON, NaN and Infinity, a number too large for
/// a double, bytes that are not UTF-8, nesting past the limit (`where` is the field it is in), a
/// key given twice, too many values or keys; at kBody: an end too early, and out_of_range: longer
/// than allowed. `num_outer_levels`: that stand around the request, and do not count as its
/// nesting.
Result<void> parse_body(std::string_view bytes, const RequestLimits& limits, Json& out,
                        int num_outer_levels = 0);

}  // namespace headrace::api
