// How far products with the upper bits of a matrix in two planes (PanelFormat::q8_coarse) can be
// from those with all bits: norms of what the lower bits add, all rounded up. Must not know
// activations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

class CoarseBounds {
 public:
  /// Most blocks of a row.
  static constexpr int64_t kMostBlocks = 1024;

  CoarseBounds(int64_t num_panels, int64_t num_blocks);

  /// From the file's row of q8_0 blocks; different rows at the same time. Rows without are zeros.
  void set_row(int64_t row, const std::byte* blocks);
  /// Once all rows are set.
  void finish();

  /// [rows, and zeros up to a whole panel]: the norm of each row's lower bits.
  const float* row_norms() const { return row_norms_.data(); }
  /// Of a panel, [blocks][16]: the norms of a block's lower bits in units of block_unit().
  const uint8_t* block_norms(int64_t panel) const {
    return block_norms_.data() + panel * num_blocks_ * 16;
  }
  /// Of a panel, [16].
  const float* block_units(int64_t panel) const { return block_units_.data() + panel * 16; }

  /// No less than the norm of any row of weights (some times more), and the largest norm of a row's
  /// lower bits. Infinite where a scale is not finite: then there are no bounds.
  double largest_weights() const { return largest_weights_; }
  double largest_row_norm() const { return largest_row_norm_; }

  size_t bytes() const;
  size_t row_bytes() const { return row_norms_.size() * sizeof(float); }

 private:
  int64_t num_blocks_;
  std::vector<float> row_norms_;
  std::vector<float> block_units_;
  std::vector<uint8_t> block_norms_;
  std::vector<double> weights_;  ///< norms of rows, until finish()
  double largest_weights_ = 0;
  double largest_row_norm_ = 0;
};

/// More than all roundings of a norm in double precision.
inline constexpr double kNormSlack = 1 + 1e-9;

/// A float that is no smaller.
float round_up(double x);

}  // namespace headrace
