// The key-value section of a GGUF file.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "checkpoint/gguf_cursor.h"
#include "checkpoint/heap_budget.h"
#include "checkpoint/metadata.h"
#include "headrace/result.h"

namespace headrace {

struct GgufMetadata {
  Metadata values;
  /// What those strings of `values` point to that are not in the file.
  std::deque<std::string> texts;
};

/// The longest key that the GGUF specification allows.
inline constexpr uint64_t kGgufLongestKey = 65535;
/// The fewest bytes of a pair: key length, type, a value of one byte.
inline constexpr uint64_t kGgufSmallestPair = 8 + 4 + 1;

/// Reads `count` pairs at the cursor. Integers are widened; an array of arrays becomes its text,
/// cut where it is long. Errors name the key and the byte: an unknown type, a length beyond the
/// file, a key twice, an empty or too long key, a bool other than 0 and 1, too deep an array.
Result<GgufMetadata> read_gguf_metadata(GgufCursor& cursor, uint64_t count, HeapBudget& budget);

}  // namespace headrace
