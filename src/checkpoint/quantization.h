// Which format each tensor of a model gets when it is quantised, at load or into a file, and its
// rows in that format. The one table of these rules. Must not know models or backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "headrace/result.h"

namespace headrace {

/// A type that a whole model can be brought to. Matrices get `layers`, but for embedding and output
/// head, which get `ends`, and for half of the value and down projections, which get `more`.
struct Quantization {
  std::string_view name;  ///< as users write it: "q4_k_m"
  Format layers;
  Format more;
  Format ends;
  uint32_t file_type;  ///< `general.file_type` of GGUF files
};

std::span<const Quantization> all_quantizations();

/// By its name, in any case; null if there is none.
const Quantization* find_quantization(std::string_view name);

/// The names, for help and messages.
std::vector<std::string> quantization_names();

/// Whether it is a matrix of 16- or 32-bit numbers that models multiply with. Norms, biases,
/// positions, routers of experts and what is quantised already are not.
bool is_quantizable(const CheckpointTensor& tensor);

/// What the tensor becomes; its own format where it stays. Where rows are no whole blocks: a format
/// of about as many bits with blocks of 32, else 16 bits. Reads no data.
Format planned_format(const Quantization& to, const CheckpointTensor& tensor);

/// The same, but bf16 instead of f16 where a weight is beyond that: reads the data then, which must
/// be there (Checkpoint::read).
Format chosen_format(const Quantization& to, const CheckpointTensor& tensor);

/// Bytes of the tensor in this format. Its columns are whole blocks of it.
uint64_t bytes_in_format(const CheckpointTensor& tensor, Format format);

/// Error: unsupported, where no matrix is left to be quantised because all are already.
Result<void> check_quantizable(const Checkpoint& checkpoint);

/// Brings one row of a tensor of 16- or 32-bit numbers to `format`, whose blocks divide it. Rows
/// are counted through all outer dimensions, or through a part of them that `data` holds. `out`
/// takes format_row_bytes. Safe to call from several threads. Error: corrupt_data, naming the place
/// of a weight that is no number, infinite or beyond what the format holds.
Result<void> encode_row(const CheckpointTensor& tensor, Format format, int64_t row, std::byte* out);

}  // namespace headrace
