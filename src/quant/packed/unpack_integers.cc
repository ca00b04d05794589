// The layouts of packed integers: GPTQ, AWQ, pack-quantized and int-quantized. Sources: the packing
// and unpacking functions of AutoGPTQ and GPTQModel (qlinear), AutoAWQ (gemm), and
// compressed-tensors (pack_to_int32, unpack_from_int32), as documented there.
#include <algorithm>
#include <array>

#include "base/checked.h"
#include "quant/packed/grouped_integers.h"
#include "quant/packed/packed_tensor.h"
#include "quant/packed/packed_weights.h"

namespace headrace {
namespace {

using packed::GroupedIntegers;
using packed::word_at;
using packed::wrong;

constexpr std::initializer_list<PackedType> kWords = {PackedType::i32};

/// The sizes of a matrix of two dimensions, none of them zero.
Result<std::array<int64_t, 2>> sizes_of(const PackedTensor& tensor,
                                        std::initializer_list<PackedType> types) {
  HEADRACE_TRY(packed::check_tensor(tensor, types));
  if (tensor.shape.size() != 2 || tensor.shape[0] == 0 || tensor.shape[1] == 0) {
    return wrong(tensor, "expected a matrix, found shape " + packed::shape_text(tensor.shape));
  }
  return std::array<int64_t, 2>{tensor.shape[0], tensor.shape[1]};
}

Result<int64_t> times(const PackedTensor& tensor, int64_t a, int64_t b) {
  const auto product = checked_mul(a, b);
  if (!product) return wrong(tensor, "has more elements than 63 bits can count");
  return *product;
}

int bits_at(uint32_t word, int place, int bits) {
  return static_cast<int>((word >> (place * bits)) & ((1u << bits) - 1));
}

/// From [groups][rows] to [rows][groups].
template <class T>
std::vector<T> transposed(const std::vector<T>& from, int64_t groups, int64_t rows) {
  std::vector<T> out(from.size());
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t row = 0; row < rows; ++row) {
      out[static_cast<size_t>(row * groups + group)] =
          from[static_cast<size_t>(group * rows + row)];
    }
  }
  return out;
}

/// Scales that lie as [groups, rows].
Result<void> set_scales_by_group(GroupedIntegers& out, const PackedTensor& scales,
                                 int64_t group_size) {
  HEADRACE_ASSIGN(const auto sizes,
                  sizes_of(scales, {PackedType::f16, PackedType::bf16, PackedType::f32}));
  if (sizes[1] != out.rows) {
    return wrong(scales, "expected shape [groups, " + std::to_string(out.rows) + "], found " +
                             packed::shape_text(scales.shape));
  }
  HEADRACE_TRY(packed::set_groups(out, group_size, sizes[0], scales));
  HEADRACE_ASSIGN(const auto values, packed::read_floats(scales));
  out.scales = transposed(values, out.num_groups, out.rows);
  return {};
}

/// Scales or zero points by [] or [1], [rows], [rows, 1] or [rows, groups]: how many groups there
/// are.
Result<int64_t> groups_by_row(const PackedTensor& tensor, int64_t rows) {
  const auto& shape = tensor.shape;
  const bool is_one = shape.empty() || (shape.size() == 1 && shape[0] == 1) ||
                      (shape.size() == 2 && shape[0] == 1 && shape[1] == 1);
  if (is_one) return int64_t{0};
  if (shape.size() == 1 && shape[0] == rows) return int64_t{1};
  if (shape.size() == 2 && shape[0] == rows && shape[1] > 0) return shape[1];
  return wrong(tensor, "expected one scale, [" + std::to_string(rows) + ", 1] or [" +
                           std::to_string(rows) + ", groups], found " + packed::shape_text(shape));
}

/// The group size of `groups` groups of the columns. Error: they do not divide them.
Result<int64_t> deduced_group_size(const PackedTensor& scales, int64_t cols, int64_t groups) {
  if (groups <= 1) return cols;
  if (cols % groups == 0) return cols / groups;
  return wrong(
      scales, std::to_string(cols) + " columns are no " + std::to_string(groups) + " equal groups");
}

Result<void> set_scales_by_row(GroupedIntegers& out, const PackedTensor& scales,
                               int64_t group_size) {
  HEADRACE_ASSIGN(out.scales, packed::read_floats(scales));
  HEADRACE_ASSIGN(int64_t groups, groups_by_row(scales, out.rows));
  if (groups == 0) {
    groups = 1;
    const float scale = out.scales[0];
    out.scales.assign(static_cast<size_t>(out.rows), scale);
  }
  if (group_size <= 0 || groups == 1) {
    HEADRACE_ASSIGN(group_size, deduced_group_size(scales, out.cols, groups));
  }
  return packed::set_groups(out, group_size, groups, scales);
}

/// Zero points of 8 bits, shaped like the scales.
Result<void> set_byte_zeros(GroupedIntegers& out, const PackedTensor& zeros) {
  HEADRACE_TRY(packed::check_tensor(zeros, {PackedType::i8}));
  HEADRACE_ASSIGN(const int64_t groups, groups_by_row(zeros, out.rows));
  if (groups > 1 && groups != out.num_groups) {
    return wrong(zeros, "expected zero points of " + std::to_string(out.num_groups) +
                            " groups, found " + std::to_string(groups));
  }
  out.zeros.resize(static_cast<size_t>(out.rows * out.num_groups));
  for (int64_t row = 0; row < out.rows; ++row) {
    for (int64_t group = 0; group < out.num_groups; ++group) {
      const int64_t from = groups == 0 ? 0 : groups == 1 ? row : row * groups + group;
      out.zeros[static_cast<size_t>(row * out.num_groups + group)] =
          static_cast<int8_t>(zeros.data[static_cast<size_t>(from)]);
    }
  }
  return {};
}

/// Which place of a word output j of eight has.
constexpr std::array<int, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

int16_t awq_level(const PackedTensor& tensor, int64_t line, int64_t row) {
  const uint32_t word = word_at(tensor, line * tensor.shape[1] + row / 8);
  return static_cast<int16_t>(bits_at(word, kAwqPlaces[static_cast<size_t>(row % 8)], 4));
}

/// Calls zero_at(row, group) for all zero points.
template <class ZeroAt>
void set_zeros(GroupedIntegers& out, ZeroAt zero_at) {
  out.zeros.resize(out.scales.size());
  for (int64_t row = 0; row < out.rows; ++row) {
    for (int64_t group = 0; group < out.num_groups; ++group) {
      out.zeros[static_cast<size_t>(row * out.num_groups + group)] =
          static_cast<int16_t>(zero_at(row, group));
    }
  }
}

/// Whether an order of columns is what it is made with before anything sets it, -1 for all: then
/// they are in their own.
bool is_unset(const PackedTensor& g_idx) {
  return !g_idx.data.empty() &&
         std::ranges::all_of(g_idx.data, [](std::byte one) { return one == std::byte{0xff}; });
}

// What each layout says besides its weights.

Result<GroupedIntegers> integers_of(const GptqModule& module) {
  const int bits = module.bits;
  HEADRACE_TRY(packed::check_bits(module.qweight, bits, {2, 4, 8}));
  const int in_word = 32 / bits;
  HEADRACE_ASSIGN(const auto sizes, sizes_of(module.qweight, kWords));
  GroupedIntegers out;
  out.most_q = (1 << bits) - 1;
  out.rows = sizes[1];
  HEADRACE_ASSIGN(out.cols, times(module.qweight, sizes[0], in_word));
  HEADRACE_TRY(set_scales_by_group(out, module.scales, module.group_size));
  if (module.g_idx != nullptr) HEADRACE_TRY(packed::set_group_order(out, *module.g_idx));
  const int64_t zero_words = ceil_div(out.rows, in_word);
  const std::array zeros_shape = {out.num_groups, zero_words};
  HEADRACE_TRY(packed::check_shape(module.qzeros, kWords, zeros_shape));
  // One less of 0 is the largest number: adding the one turns it back.
  const int more = module.zeros_form == GptqZeros::minus_one ? 1 : 0;
  set_zeros(out, [&](int64_t row, int64_t group) {
    const uint32_t word = word_at(module.qzeros, group * zero_words + row / in_word);
    return (bits_at(word, static_cast<int>(row % in_word), bits) + more) & out.most_q;
  });
  return out;
}

Result<GroupedIntegers> integers_of(const AwqModule& module) {
  HEADRACE_ASSIGN(const auto sizes, sizes_of(module.qweight, kWords));
  GroupedIntegers out;
  out.most_q = 15;
  out.cols = sizes[0];
  HEADRACE_ASSIGN(out.rows, times(module.qweight, sizes[1], 8));
  HEADRACE_TRY(set_scales_by_group(out, module.scales, module.group_size));
  if (module.qzeros != nullptr) {
    const std::array zeros_shape = {out.num_groups, sizes[1]};
    HEADRACE_TRY(packed::check_shape(*module.qzeros, kWords, zeros_shape));
  }
  set_zeros(out, [&](int64_t row, int64_t group) {
    return module.qzeros != nullptr ? int{awq_level(*module.qzeros, group, row)} : 8;
  });
  return out;
}

Result<GroupedIntegers> integers_of(const PackQuantizedModule& module) {
  const int bits = module.bits;
  HEADRACE_TRY(packed::check_bits(module.weight_packed, bits, {4, 8}));
  const int in_word = 32 / bits;
  const std::array pair = {int64_t{2}};
  HEADRACE_TRY(packed::check_shape(module.weight_shape, {PackedType::i32, PackedType::i64}, pair));
  const std::vector<int64_t> shape = packed::read_ints(module.weight_shape);
  // Bounded by what is there, before anything is computed with them.
  HEADRACE_ASSIGN(const auto sizes, sizes_of(module.weight_packed, kWords));
  HEADRACE_ASSIGN(const int64_t most_cols, times(module.weight_packed, sizes[1], in_word));
  if (shape[0] != sizes[0] || shape[1] > most_cols || shape[1] <= most_cols - in_word) {
    return wrong(module.weight_packed, "weight_shape is " + packed::shape_text(shape) + ", which " +
                                           packed::shape_text(sizes) + " words of " +
                                           std::to_string(in_word) + " weights do not make");
  }
  GroupedIntegers out;
  const int half = 1 << (bits - 1);
  out.least_q = -half;
  out.most_q = half - 1;
  out.rows = shape[0];
  out.cols = shape[1];
  HEADRACE_TRY(set_scales_by_row(out, module.weight_scale, module.group_size));
  if (module.weight_g_idx != nullptr && !is_unset(*module.weight_g_idx)) {
    HEADRACE_TRY(packed::set_group_order(out, *module.weight_g_idx));
  }
  const PackedTensor* zeros = module.weight_zero_point;
  if (zeros == nullptr) return out;
  if (zeros->type == PackedType::i8) {
    HEADRACE_TRY(set_byte_zeros(out, *zeros));
    return out;
  }
  const std::array zeros_shape = {ceil_div(out.rows, in_word), out.num_groups};
  HEADRACE_TRY(packed::check_shape(*zeros, kWords, zeros_shape));
  set_zeros(out, [&](int64_t row, int64_t group) {
    const uint32_t word = word_at(*zeros, row / in_word * out.num_groups + group);
    return bits_at(word, static_cast<int>(row % in_word), bits) - half;
  });
  return out;
}

Result<GroupedIntegers> integers_of(const ScaledIntModule& module) {
  HEADRACE_ASSIGN(const auto sizes, sizes_of(module.weight, {PackedType::i8}));
  GroupedIntegers out;
  out.least_q = -128;
  out.most_q = 127;
  out.rows = sizes[0];
  out.cols = sizes[1];
  HEADRACE_TRY(set_scales_by_row(out, module.weight_scale, -1));
  if (module.weight_zero_point != nullptr) {
    HEADRACE_TRY(set_byte_zeros(out, *module.weight_zero_point));
  }
  return out;
}

template <class Module>
Result<UnpackedPlan> plan(const Module& module) {
  HEADRACE_ASSIGN(const GroupedIntegers integers, integers_of(module));
  return packed::plan_of(integers);
}

}  // namespace

Result<UnpackedPlan> plan_gptq(const GptqModule& module) {
  return plan(module);
}
Result<UnpackedPlan> plan_awq(const AwqModule& module) {
  return plan(module);
}
Result<UnpackedPlan> plan_pack_quantized(const PackQuantizedModule& module) {
  return plan(module);
}
Result<UnpackedPlan> plan_scaled_int(const ScaledIntModule& module) {
  return plan(module);
}

Result<UnpackedMatrix> unpack_gptq(const GptqModule& module) {
  HEADRACE_ASSIGN(const GroupedIntegers integers, integers_of(module));
  const int in_word = 32 / module.bits;
  return packed::pack_integers(integers, [&](int64_t row, int64_t first, int64_t count,
                                             int16_t* out) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t col = first + i;
      const uint32_t word = word_at(module.qweight, col / in_word * integers.rows + row);
      out[i] = static_cast<int16_t>(bits_at(word, static_cast<int>(col % in_word), module.bits));
    }
  });
}

Result<UnpackedMatrix> unpack_awq(const AwqModule& module) {
  HEADRACE_ASSIGN(const GroupedIntegers integers, integers_of(module));
  return packed::pack_integers(integers,
                               [&](int64_t row, int64_t first, int64_t count, int16_t* out) {
                                 for (int64_t i = 0; i < count; ++i)
                                   out[i] = awq_level(module.qweight, first + i, row);
                               });
}

Result<UnpackedMatrix> unpack_pack_quantized(const PackQuantizedModule& module) {
  HEADRACE_ASSIGN(const GroupedIntegers integers, integers_of(module));
  const int in_word = 32 / module.bits;
  const int64_t row_words = module.weight_packed.shape[1];
  return packed::pack_integers(
      integers, [&](int64_t row, int64_t first, int64_t count, int16_t* out) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t col = first + i;
          const uint32_t word = word_at(module.weight_packed, row * row_words + col / in_word);
          const int level = bits_at(word, static_cast<int>(col % in_word), module.bits);
          out[i] = static_cast<int16_t>(level + integers.least_q);
        }
      });
}

Result<UnpackedMatrix> unpack_scaled_int(const ScaledIntModule& module) {
  HEADRACE_ASSIGN(const GroupedIntegers integers, integers_of(module));
  return packed::pack_integers(
      integers, [&](int64_t row, int64_t first, int64_t count, int16_t* out) {
        const std::byte* from =
            module.weight.data.data() + static_cast<size_t>(row * integers.cols + first);
        for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(from[i]);
      });
}

}  // namespace headrace
