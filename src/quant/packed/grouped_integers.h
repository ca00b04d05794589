// Integers with a scale and a zero point a group, to blocks: what the packed layouts have in
// common. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "headrace/result.h"
#include "quant/packed/packed_weights.h"

namespace headrace::packed {

/// weight(row, col) = scale * (q - zero) of the column's group.
struct GroupedIntegers {
  int64_t rows = 0;
  int64_t cols = 0;
  int least_q = 0;  ///< what q can be
  int most_q = 0;
  int64_t num_groups = 1;
  int64_t group_size = 0;         ///< columns
  std::vector<int32_t> group_of;  ///< [cols]; empty: col / group_size
  std::vector<float> scales;      ///< [rows][num_groups]
  std::vector<int16_t> zeros;     ///< [rows][num_groups]; empty: all 0

  int64_t group(int64_t col) const {
    return group_of.empty() ? col / group_size : group_of[static_cast<size_t>(col)];
  }
  size_t index(int64_t row, int64_t col) const {
    return static_cast<size_t>(row * num_groups + group(col));
  }
};

/// Sets num_groups and group_size: groups of `asked` columns (-1: one), of which `scales` has
/// `found`. Error: another number of groups than that makes.
Result<void> set_groups(GroupedIntegers& out, int64_t asked, int64_t found,
                        const PackedTensor& scales);

/// Sets group_of, where it is another order than the columns' own. Errors: shape, a group that is
/// not there.
Result<void> set_group_order(GroupedIntegers& out, const PackedTensor& g_idx);

/// Writes q of the columns [first, first + count) of a row.
using ReadLevels = FunctionRef<void(int64_t row, int64_t first, int64_t count, int16_t* out)>;

/// What pack_integers gives, as packed_weights.h says.
UnpackedPlan plan_of(const GroupedIntegers& integers);

/// The matrix. Each column of each row is read once.
UnpackedMatrix pack_integers(const GroupedIntegers& integers, ReadLevels read);

}  // namespace headrace::packed
