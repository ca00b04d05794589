// Stored tensors brought to a weight format, and changed where GGUF has them otherwise. Must not
// know files or models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/safetensors_file.h"
#include "headrace/result.h"
#include "model/hf/hf_model.h"
#include "quant/format.h"

namespace headrace {

/// The format that a stored type is read as: itself, F16 for 8-bit floats, F32 for F64; nothing for
/// integers.
std::optional<Format> format_read_as(StoredType type);

/// Which of the tensors that HfChange::gate_and_up makes.
enum class ExpertHalf : uint8_t { gate, up };

/// What the change needs to know besides.
struct HfChangeContext {
  int64_t width = 0;                   ///< of the model: changes of experts
  ExpertHalf half = ExpertHalf::gate;  ///< gate_and_up
};

/// Whether the stored bytes are the tensor already: its format, and at an address fit for it.
bool lies_as_it_is(const StoredTensor& tensor, HfChange change);

/// The bytes of the tensor in the format of made_shape: add_one and stack give F32. `parts`: one,
/// or for `stack` the rows in order. Errors: corrupt_data (a shape that the change does not allow,
/// or parts that differ), unsupported (integers).
Result<std::vector<std::byte>> make_tensor(std::span<const StoredTensor* const> parts,
                                           HfChange change, const HfChangeContext& context);

/// The shape and format of what make_tensor gives.
struct MadeShape {
  Format format = Format::f32;
  std::vector<int64_t> shape;
};
Result<MadeShape> made_shape(std::span<const StoredTensor* const> parts, HfChange change,
                             const HfChangeContext& context);

}  // namespace headrace
