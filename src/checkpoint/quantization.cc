// See quantization.h.
#include "checkpoint/quantization.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <string>

#include "base/check.h"
#include "base/saturating.h"
#include "quant/encode.h"

namespace headrace {
namespace {

// Numbers of `general.file_type`: the GGUF specification, and class LlamaFileType of PyPI's `gguf`.
constexpr Quantization kQuantizations[] = {
    {"f32", Format::f32, Format::f32, Format::f32, 0},
    {"f16", Format::f16, Format::f16, Format::f16, 1},
    {"bf16", Format::bf16, Format::bf16, Format::bf16, 32},
    {"q8_0", Format::q8_0, Format::q8_0, Format::q8_0, 7},
    {"q6_k", Format::q6_k, Format::q6_k, Format::q6_k, 18},
    {"q5_k_m", Format::q5_k, Format::q6_k, Format::q6_k, 17},
    {"q5_k", Format::q5_k, Format::q5_k, Format::q6_k, 16},
    {"q5_k_s", Format::q5_k, Format::q5_k, Format::q6_k, 16},
    {"q4_k_m", Format::q4_k, Format::q6_k, Format::q6_k, 15},
    {"q4_k", Format::q4_k, Format::q4_k, Format::q6_k, 14},
    {"q4_k_s", Format::q4_k, Format::q4_k, Format::q6_k, 14},
    {"q3_k_m", Format::q3_k, Format::q5_k, Format::q6_k, 12},
    {"q3_k", Format::q3_k, Format::q3_k, Format::q6_k, 11},
    {"q3_k_s", Format::q3_k, Format::q3_k, Format::q6_k, 11},
    {"q2_k", Format::q2_k, Format::q3_k, Format::q6_k, 10},
    {"q5_1", Format::q5_1, Format::q5_1, Format::q6_k, 9},
    {"q5_0", Format::q5_0, Format::q5_0, Format::q6_k, 8},
    {"q4_1", Format::q4_1, Format::q4_1, Format::q6_k, 3},
    {"q4_0", Format::q4_0, Format::q4_0, Format::q6_k, 2},
    {"iq4_nl", Format::iq4_nl, Format::iq4_nl, Format::q6_k, 25},
};

/// What has blocks of 32 instead of 256, at about as many bits.
Format with_small_blocks(Format format) {
  switch (format) {
    case Format::q2_k:
    case Format::q3_k:
      return Format::q4_0;
    case Format::q4_k:
      return Format::q4_1;
    case Format::q5_k:
      return Format::q5_1;
    case Format::q6_k:
      return Format::q8_0;
    default:
      return format;
  }
}

bool is_plain(Format format) {
  return format == Format::f32 || format == Format::f16 || format == Format::bf16;
}

uint64_t cols_of(const CheckpointTensor& tensor) {
  return static_cast<uint64_t>(tensor.shape.back());
}

uint64_t rows_of(const CheckpointTensor& tensor) {
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
    rows = saturating_mul(rows, static_cast<uint64_t>(tensor.shape[i]));
  }
  return rows;
}

bool fits(Format format, uint64_t cols) {
  return cols % format_traits(format).block_elements == 0;
}

bool is_matrix(const CheckpointTensor& tensor) {
  if (tensor.shape.empty() || rows_of(tensor) <= 1 || cols_of(tensor) <= 1) return false;
  if (!tensor.name.ends_with(".weight")) return false;
  constexpr auto kKept = std::to_array<std::string_view>(
      {"norm", "ffn_gate_inp", "position_embd", "token_types", "rope_f", "conv1d"});
  return std::none_of(kKept.begin(), kKept.end(), [&](std::string_view part) {
    return tensor.name.find(part) != std::string::npos;
  });
}

/// The number of "blk.<number>." at the begin of a name; -1: none.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kLayer = "blk.";
  if (!name.starts_with(kLayer)) return -1;
  int64_t layer = 0;
  size_t i = kLayer.size();
  for (; i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])) != 0; ++i) {
    if (layer > 1'000'000) return -1;
    layer = layer * 10 + (name[i] - '0');
  }
  return i > kLayer.size() ? layer : -1;
}

Format wanted_format(const Quantization& to, const CheckpointTensor& tensor) {
  const std::string_view name = tensor.name;
  if (name == "token_embd.weight" || name == "output.weight") return to.ends;
  const bool needs_more = name.find(".attn_v.") != std::string_view::npos ||
                          name.find(".ffn_down") != std::string_view::npos;
  return needs_more && layer_of(name) % 2 == 0 ? to.more : to.layers;
}

bool fits_half(const CheckpointTensor& tensor) {
  const FormatTraits& traits = format_traits(tensor.format);
  const Encoder& half = *encoder_of(Format::f16);
  std::array<float, 1024> values;
  const size_t count = tensor.data.size() / traits.block_bytes;
  for (size_t first = 0; first < count; first += values.size()) {
    const size_t n = std::min(values.size(), count - first);
    traits.decode(tensor.data.data() + first * traits.block_bytes, values.data(), n);
    if (find_unencodable(half, std::span(values).first(n))) return false;
  }
  return true;
}

Error bad_weight(const CheckpointTensor& tensor, Format format, int64_t row, uint64_t col,
                 float value) {
  std::string message =
      "the weight in row " + std::to_string(row) + ", column " + std::to_string(col) + " is ";
  if (std::isnan(value)) {
    message += "not a number";
  } else if (std::isinf(value)) {
    message += "infinite";
  } else {
    message += std::to_string(value) + ", more than " + std::string(format_traits(format).name) +
               " can hold";
  }
  return {ErrorCode::corrupt_data, std::move(message), "tensor '" + tensor.name + "'",
          "the file is damaged, or was trained to where it diverged"};
}

}  // namespace

std::span<const Quantization> all_quantizations() {
  return kQuantizations;
}

const Quantization* find_quantization(std::string_view name) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  for (const Quantization& one : kQuantizations) {
    if (std::equal(name.begin(), name.end(), one.name.begin(), one.name.end(), same)) return &one;
  }
  return nullptr;
}

std::vector<std::string> quantization_names() {
  std::vector<std::string> names;
  for (const Quantization& one : kQuantizations) names.emplace_back(one.name);
  return names;
}

bool is_quantizable(const CheckpointTensor& tensor) {
  return is_matrix(tensor) && is_plain(tensor.format);
}

Format planned_format(const Quantization& to, const CheckpointTensor& tensor) {
  if (!is_quantizable(tensor)) return tensor.format;
  const Format wanted = wanted_format(to, tensor);
  for (const Format format : {wanted, with_small_blocks(wanted)}) {
    if (fits(format, cols_of(tensor))) return format;
  }
  return tensor.format == Format::f32 ? Format::f16 : tensor.format;
}

Format chosen_format(const Quantization& to, const CheckpointTensor& tensor) {
  const Format planned = planned_format(to, tensor);
  if (planned != Format::f16 || tensor.format == Format::f16) return planned;
  return fits_half(tensor) ? planned : Format::bf16;
}

uint64_t bytes_in_format(const CheckpointTensor& tensor, Format format) {
  const auto row_bytes = format_row_bytes(format, cols_of(tensor));
  HEADRACE_CHECK(row_bytes.has_value());
  return saturating_mul(*row_bytes, rows_of(tensor));
}

Result<void> check_quantizable(const Checkpoint& checkpoint) {
  std::set<std::string> found;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (is_quantizable(tensor)) return {};
    if (is_matrix(tensor)) found.emplace(format_traits(tensor.format).name);
  }
  std::string formats;
  for (const std::string& one : found) formats += (formats.empty() ? "" : ", ") + one;
  return Error{ErrorCode::unsupported,
               "there is nothing to quantise: all matrices are quantised already" +
                   (formats.empty() ? "" : " (" + formats + ")"),
               checkpoint.path(), "give the model's file with F32, F16 or BF16 weights"};
}

Result<void> encode_row(const CheckpointTensor& tensor, Format format, int64_t row,
                        std::byte* out) {
  const FormatTraits& from = format_traits(tensor.format);
  const FormatTraits& to = format_traits(format);
  const Encoder* encoder = encoder_of(format);
  HEADRACE_CHECK(is_plain(tensor.format) && encoder != nullptr);
  const uint64_t cols = cols_of(tensor);
  HEADRACE_CHECK_EQ(cols % to.block_elements, 0u);
  const std::byte* data = tensor.data.data() + static_cast<uint64_t>(row) * cols * from.block_bytes;
  alignas(16) std::array<float, 1024> values;  // whole blocks of every format
  for (uint64_t first = 0; first < cols; first += values.size()) {
    const size_t count = std::min<uint64_t>(values.size(), cols - first);
    const auto part = std::span(values).first(count);
    from.decode(data + first * from.block_bytes, part.data(), count);
    if (const auto bad = find_unencodable(*encoder, part)) {
      return bad_weight(tensor, format, row, first + *bad, part[*bad]);
    }
    const size_t num_blocks = count / to.block_elements;
    encoder->encode(part.data(), nullptr, out, num_blocks);
    out += num_blocks * to.block_bytes;
  }
  return {};
}

}  // namespace headrace
