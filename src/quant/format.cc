// The table of weight formats; see format.h.
#include "quant/format.h"

#include <array>

#include "base/check.h"
#include "base/checked.h"
#include "quant/reference.h"

namespace headrace {
namespace {

constexpr size_t kNumFormats = 0
#define HEADRACE_FORMAT(id, name, ggml_type, block_elements, block_bytes) +1
#include "quant/formats.def"
#undef HEADRACE_FORMAT
    ;

std::array<FormatTraits, kNumFormats> make_table() {
  const auto decoders = reference_decoders();
  HEADRACE_CHECK_EQ(decoders.size(), kNumFormats);
  return {{
#define HEADRACE_FORMAT(id, name, ggml_type, block_elements, block_bytes) \
  {Format::id,     name,        ggml_type,                                \
   block_elements, block_bytes, decoders[static_cast<size_t>(Format::id)]},
#include "quant/formats.def"
#undef HEADRACE_FORMAT
  }};
}

}  // namespace

std::span<const FormatTraits> all_formats() {
  static const auto table = make_table();
  return table;
}

const FormatTraits& format_traits(Format format) {
  const auto index = static_cast<size_t>(format);
  HEADRACE_CHECK_LT(index, kNumFormats);
  return all_formats()[index];
}

std::optional<Format> format_from_ggml_type(uint32_t ggml_type) {
  for (const FormatTraits& traits : all_formats()) {
    if (traits.ggml_type == ggml_type) return traits.format;
  }
  return std::nullopt;
}

std::optional<uint64_t> format_row_bytes(Format format, uint64_t cols) {
  const FormatTraits& traits = format_traits(format);
  if (cols % traits.block_elements != 0) return std::nullopt;
  return checked_mul<uint64_t>(cols / traits.block_elements, traits.block_bytes);
}

}  // namespace headrace
