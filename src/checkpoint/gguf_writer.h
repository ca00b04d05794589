// Writes GGUF files (version 3): header, metadata, tensor records, then data as it comes. Owns the
// layout. Must not know where the data is from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "checkpoint/metadata.h"
#include "headrace/result.h"
#include "quant/format.h"

namespace headrace {

/// A tensor to be written; `shape` has the outermost dimension first.
struct GgufTensorPlan {
  std::string name;
  Format format = Format::f32;
  std::vector<int64_t> shape;
};

/// Takes the next bytes of a tensor.
using GgufPut = FunctionRef<Result<void>(std::span<const std::byte> bytes)>;

/// Hands all bytes of tensor number `index` to `put`, in as many parts as it likes. Called once a
/// tensor, in order.
using GgufData = FunctionRef<Result<void>(size_t index, GgufPut put)>;

/// Bytes of the file that write_gguf would write. Errors: invalid_argument, where a tensor cannot
/// stand in a GGUF file (its name or its shape) or a key is too long.
Result<uint64_t> gguf_file_bytes(const Metadata& metadata, std::span<const GgufTensorPlan> tensors);

/// Writes `path`, replacing what is there. It appears once it is whole and on the disk; until then,
/// and where anything fails, nothing has changed but for a temporary file beside it. Integers are
/// written in 32 bits and floats as F32 where that holds them, as files have them; the character
/// map of a tokenizer in bytes. `general.alignment` is left out: data lies at multiples of 32.
///
/// Errors: those of gguf_file_bytes; resource_exhausted, before anything is written where the disk
/// has too little room; io_error; what `data` returns.
Result<void> write_gguf(const std::string& path, const Metadata& metadata,
                        std::span<const GgufTensorPlan> tensors, GgufData data);

}  // namespace headrace
