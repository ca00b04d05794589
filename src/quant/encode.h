// From floats to blocks: the other way of format.h. Owns how each format is rounded to. Must not
// know files, threads or instruction sets.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "quant/format.h"

namespace headrace {

/// Encodes num_blocks * block_elements floats. `importance` has one number >= 0 a weight, what its
/// squared error counts; null: all count alike. Each block depends on its own weights alone, and is
/// the same on every machine. Total: NaN becomes zero, and what is beyond `max_magnitude` is cut.
using EncodeBlocks = void (*)(const float* values, const float* importance, std::byte* blocks,
                              size_t num_blocks);

struct Encoder {
  Format format;
  float max_magnitude;  ///< the largest weight that a block can hold
  EncodeBlocks encode;
};

/// Null for formats that are read only.
const Encoder* encoder_of(Format format);

/// The index of the first value that is no number, infinite, or beyond what the format holds.
std::optional<size_t> find_unencodable(const Encoder& encoder, std::span<const float> values);

}  // namespace headrace
