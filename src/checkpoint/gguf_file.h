// One GGUF file in memory, read whole: header, metadata, tensors. Does not own the bytes.
//
// Source: the GGUF specification, versions 2 and 3 (they differ in that 3 may be big-endian, which
// is not supported).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/heap_budget.h"
#include "checkpoint/metadata.h"
#include "headrace/result.h"

namespace headrace {

/// What one GGUF file says. Strings and tensor data point into the file's bytes.
struct GgufFile {
  uint32_t version = 0;
  Metadata metadata;
  std::vector<CheckpointTensor> tensors;
  /// Text of arrays of arrays, which `metadata` points to.
  std::deque<std::string> texts;
};

/// Whether these bytes begin with GGUF's magic.
bool is_gguf(std::span<const std::byte> file);

/// Reads a file. Memory taken is bounded by `budget`, whatever the file claims. Errors:
/// corrupt_data, unsupported (version, byte order, tensor type), resource_exhausted; each names a
/// key or tensor where there is one, and a byte.
Result<GgufFile> read_gguf(std::span<const std::byte> file, HeapBudget& budget);

}  // namespace headrace
