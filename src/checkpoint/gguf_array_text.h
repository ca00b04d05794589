// The text form of an array of arrays, the only form in which one is kept.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/gguf_cursor.h"
#include "headrace/result.h"

namespace headrace {

/// Arrays in arrays in arrays: no known key has more than one level.
inline constexpr int kGgufDeepestArray = 8;

/// Reads `count` arrays at the cursor (the inside of an array whose element type is array) and
/// returns "[[1, 2], [3]]", cut after about a thousand bytes. All of it is checked nevertheless.
/// Errors: an unknown type, a length beyond the file, more than kGgufDeepestArray levels.
Result<std::string> read_gguf_array_text(GgufCursor& cursor, uint64_t count);

}  // namespace headrace
