// Weight formats: what a block is, how it decodes. One line a format in formats.def, one header a
// format. Must not know files, threads or instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headrace {

enum class Format : uint8_t {
#define HEADRACE_FORMAT(id, name, ggml_type, block_elements, block_bytes) id,
#include "quant/formats.def"
#undef HEADRACE_FORMAT
};

/// Decodes `num_blocks` blocks to num_blocks * block_elements floats. The result is bit for bit
/// that of the format's published reference.
using DecodeBlocks = void (*)(const std::byte* blocks, float* out, size_t num_blocks);

struct FormatTraits {
  Format format;
  std::string_view name;    ///< as users write it: "Q4_K"
  uint32_t ggml_type;       ///< type number in GGUF files
  uint32_t block_elements;  ///< weights per block, along a row
  uint32_t block_bytes;
  DecodeBlocks decode;
};

const FormatTraits& format_traits(Format format);
std::span<const FormatTraits> all_formats();

/// The format with this GGUF type number, if this build knows it.
std::optional<Format> format_from_ggml_type(uint32_t ggml_type);

/// Bytes of a row of `cols` weights; nothing if `cols` is no multiple of the block.
std::optional<uint64_t> format_row_bytes(Format format, uint64_t cols);

}  // namespace headrace
