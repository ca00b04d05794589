// One typed value of a GGUF file's metadata.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "checkpoint/gguf_cursor.h"
#include "checkpoint/heap_budget.h"
#include "checkpoint/metadata.h"
#include "headrace/result.h"

namespace headrace {

/// Value type numbers, from the GGUF specification.
enum class GgufType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

/// Reads a value of this type number at the cursor. The text of an array of arrays is put into
/// `texts`. Errors name the byte; the caller adds the key.
Result<MetaValue> read_gguf_value(GgufCursor& cursor, uint32_t type, HeapBudget& budget,
                                  std::deque<std::string>& texts);

}  // namespace headrace
