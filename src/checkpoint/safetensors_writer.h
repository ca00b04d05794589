// Writes safetensors files: a header, then data as it comes. Owns the layout. Must not know where
// the data is from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "headrace/result.h"
#include "quant/format.h"

namespace headrace {

/// A tensor to be written; `shape` has the outermost dimension first. `format`: F32, F16 or BF16.
struct SafetensorsPlan {
  std::string name;
  Format format = Format::f32;
  std::vector<int64_t> shape;
};

/// Bytes of its data.
uint64_t safetensors_bytes(const SafetensorsPlan& plan);

/// Takes the next bytes of a tensor.
using SafetensorsPut = FunctionRef<Result<void>(std::span<const std::byte> bytes)>;
/// Hands all bytes of tensor number `index` to `put`, in as many parts as it likes. Called once a
/// tensor, in order.
using SafetensorsData = FunctionRef<Result<void>(size_t index, SafetensorsPut put)>;

/// Writes `path`, which appears once it is whole; `path` with ".part" is used meanwhile. Data
/// begins at a multiple of 8. Returns the file's size. Errors: io_error, resource_exhausted; what
/// `data` returns.
Result<uint64_t> write_safetensors(const std::string& path,
                                   std::span<const SafetensorsPlan> tensors, SafetensorsData data);

/// The text of model.safetensors.index.json: which file each tensor is in; `files` is beside
/// `tensors`.
std::string safetensors_index(std::span<const SafetensorsPlan> tensors,
                              std::span<const std::string> files);

}  // namespace headrace
