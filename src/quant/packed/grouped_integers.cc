// See grouped_integers.h.
#include "quant/packed/grouped_integers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "quant/packed/packed_tensor.h"
#include "quant/q4_0.h"
#include "quant/q5_0.h"
#include "quant/q8_0.h"
#include "tensor/half.h"

namespace headrace::packed {
namespace {

constexpr int64_t kBlockCols = 32;
using BlockLevels = std::array<int16_t, kBlockCols>;

/// The scale as binary16, if it is one, or within 2^-11 of one.
std::optional<uint16_t> half_scale(float scale) {
  const uint16_t half = f32_to_f16(scale);
  const float off = std::fabs(f16_to_f32(half) - scale);
  if (!(off <= std::fabs(scale) * 0x1.0p-11f)) return std::nullopt;
  return half;
}

/// q - zero of some columns of a row.
void read_differences(const GroupedIntegers& integers, ReadLevels read, int64_t row, int64_t first,
                      int64_t count, int16_t* out) {
  read(row, first, count, out);
  if (integers.zeros.empty()) return;
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<int16_t>(out[i] - integers.zeros[integers.index(row, first + i)]);
  }
}

/// Calls visit(row, first, count, differences) for runs of up to 32 columns: all rows of the same
/// columns one after the other, since some layouts have these beside each other.
template <class Visit>
void for_each_run(const GroupedIntegers& integers, ReadLevels read, Visit visit) {
  BlockLevels levels;
  for (int64_t first = 0; first < integers.cols; first += kBlockCols) {
    const int64_t count = std::min(kBlockCols, integers.cols - first);
    for (int64_t row = 0; row < integers.rows; ++row) {
      read_differences(integers, read, row, first, count, levels.data());
      visit(row, first, count, levels);
    }
  }
}

/// Whether each block has one scale, a binary16 number.
bool has_block_scales(const GroupedIntegers& integers) {
  if (integers.cols % kBlockCols != 0 || !integers.group_of.empty()) return false;
  if (integers.num_groups > 1 && integers.group_size % kBlockCols != 0) return false;
  return std::all_of(integers.scales.begin(), integers.scales.end(),
                     [](float scale) { return half_scale(scale).has_value(); });
}

/// The format whose integers reach from `least` to `most`.
std::optional<Format> format_of_range(int least, int most) {
  if (least >= -8 && most <= 7) return Format::q4_0;
  if (least >= -16 && most <= 15) return Format::q5_0;
  if (least >= -128 && most <= 127) return Format::q8_0;
  return std::nullopt;
}

void write_q4_0(const BlockLevels& levels, uint16_t d, std::byte* out) {
  BlockQ4_0 block;
  block.d = d;
  for (size_t i = 0; i < 16; ++i) {
    block.qs[i] = static_cast<uint8_t>((levels[i] + 8) | (levels[i + 16] + 8) << 4);
  }
  std::memcpy(out, &block, sizeof block);
}

void write_q5_0(const BlockLevels& levels, uint16_t d, std::byte* out) {
  BlockQ5_0 block = {};
  block.d = d;
  for (size_t i = 0; i < 16; ++i) {
    const int low = levels[i] + 16;
    const int high = levels[i + 16] + 16;
    block.qs[i] = static_cast<uint8_t>((low & 0x0f) | (high & 0x0f) << 4);
    block.qh[i / 8] = static_cast<uint8_t>(block.qh[i / 8] | (low >> 4) << (i % 8));
    block.qh[2 + i / 8] = static_cast<uint8_t>(block.qh[2 + i / 8] | (high >> 4) << (i % 8));
  }
  std::memcpy(out, &block, sizeof block);
}

void write_q8_0(const BlockLevels& levels, uint16_t d, std::byte* out) {
  BlockQ8_0 block;
  block.d = d;
  for (size_t i = 0; i < 32; ++i) block.qs[i] = static_cast<int8_t>(levels[i]);
  std::memcpy(out, &block, sizeof block);
}

void write_block(Format format, const BlockLevels& levels, uint16_t d, std::byte* out) {
  switch (format) {
    case Format::q4_0:
      return write_q4_0(levels, d, out);
    case Format::q5_0:
      return write_q5_0(levels, d, out);
    default:
      return write_q8_0(levels, d, out);
  }
}

void write_blocks(const GroupedIntegers& integers, ReadLevels read, UnpackedMatrix& out) {
  const uint32_t block_bytes = format_traits(out.format).block_bytes;
  const int64_t row_blocks = integers.cols / kBlockCols;
  out.bytes.resize(static_cast<size_t>(integers.rows * row_blocks) * block_bytes);
  for_each_run(integers, read, [&](int64_t row, int64_t first, int64_t, const BlockLevels& levels) {
    const float scale = integers.scales[integers.index(row, first)];
    const auto block = static_cast<size_t>(row * row_blocks + first / kBlockCols);
    write_block(out.format, levels, f32_to_f16(scale), out.bytes.data() + block * block_bytes);
  });
}

void write_floats(const GroupedIntegers& integers, ReadLevels read, UnpackedMatrix& out) {
  out.bytes.resize(static_cast<size_t>(integers.rows * integers.cols) * sizeof(float));
  for_each_run(integers, read,
               [&](int64_t row, int64_t first, int64_t count, const BlockLevels& levels) {
                 for (int64_t i = 0; i < count; ++i) {
                   const float value = integers.scales[integers.index(row, first + i)] *
                                       static_cast<float>(levels[static_cast<size_t>(i)]);
                   const auto index = static_cast<size_t>(row * integers.cols + first + i);
                   std::memcpy(out.bytes.data() + index * sizeof value, &value, sizeof value);
                 }
               });
}

}  // namespace

Result<void> set_groups(GroupedIntegers& out, int64_t asked, int64_t found,
                        const PackedTensor& scales) {
  out.group_size = asked > 0 ? std::min(asked, std::max<int64_t>(out.cols, 1)) : out.cols;
  out.num_groups = found;
  const int64_t expected = ceil_div(out.cols, std::max<int64_t>(out.group_size, 1));
  if (found == expected && found > 0) return {};
  return wrong(scales, "expected scales of " + std::to_string(expected) + " groups of " +
                           std::to_string(out.group_size) + " of the " + std::to_string(out.cols) +
                           " columns, found " + std::to_string(found));
}

Result<void> set_group_order(GroupedIntegers& out, const PackedTensor& g_idx) {
  const std::array shape = {out.cols};
  HEADRACE_TRY(check_shape(g_idx, {PackedType::i32}, shape));
  std::vector<int32_t> groups(static_cast<size_t>(out.cols));
  bool is_in_order = true;
  for (int64_t col = 0; col < out.cols; ++col) {
    const auto group = static_cast<int32_t>(word_at(g_idx, col));
    if (group < 0 || group >= out.num_groups) {
      return wrong(g_idx, "column " + std::to_string(col) + " is in group " +
                              std::to_string(group) + " of " + std::to_string(out.num_groups));
    }
    is_in_order = is_in_order && group == col / out.group_size;
    groups[static_cast<size_t>(col)] = group;
  }
  if (!is_in_order) out.group_of = std::move(groups);
  return {};
}

UnpackedPlan plan_of(const GroupedIntegers& integers) {
  UnpackedPlan plan{Format::f32, integers.rows, integers.cols};
  if (!has_block_scales(integers)) return plan;
  int least_zero = 0;
  int most_zero = 0;
  if (!integers.zeros.empty()) {
    const auto [least, most] = std::minmax_element(integers.zeros.begin(), integers.zeros.end());
    least_zero = *least;
    most_zero = *most;
  }
  plan.format = format_of_range(integers.least_q - most_zero, integers.most_q - least_zero)
                    .value_or(Format::f32);
  return plan;
}

UnpackedMatrix pack_integers(const GroupedIntegers& integers, ReadLevels read) {
  const UnpackedPlan plan = plan_of(integers);
  UnpackedMatrix out{plan.format, plan.rows, plan.cols, {}};
  if (plan.format == Format::f32) {
    write_floats(integers, read, out);
  } else {
    write_blocks(integers, read, out);
  }
  return out;
}

}  // namespace headrace::packed
