// The tensor records of a GGUF file.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_cursor.h"
#include "checkpoint/heap_budget.h"
#include "headrace/result.h"

namespace headrace {

/// The longest tensor name. The specification says 64; some writers exceed it.
inline constexpr uint64_t kGgufLongestTensorName = 256;
inline constexpr uint32_t kGgufMaxDims = 4;
/// The fewest bytes of a record: name length, number of dimensions, type, offset.
inline constexpr uint64_t kGgufSmallestRecord = 8 + 4 + 4 + 8;

/// Reads `count` records at the cursor and finds each tensor's data in `file`, the whole file. The
/// data section begins at the first multiple of `alignment` after the records.
///
/// Errors name tensor and byte: a name that is empty, too long or there twice; more than four
/// dimensions; a dimension below 1; a product or size that overflows; an unknown type
/// (`unsupported`); rows that are no whole number of blocks; an offset that is no multiple of the
/// alignment; data beyond the file's end or shared by two tensors.
Result<std::vector<CheckpointTensor>> read_gguf_tensors(GgufCursor& cursor, uint64_t count,
                                                        uint64_t alignment,
                                                        std::span<const std::byte> file,
                                                        HeapBudget& budget);

}  // namespace headrace
