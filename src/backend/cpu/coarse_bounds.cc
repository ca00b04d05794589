// See coarse_bounds.h.
#include "backend/cpu/coarse_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels/kernel_table.h"
#include "base/check.h"
#include "quant/q8_0.h"
#include "tensor/half.h"

namespace headrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The sum of squares of twice what 8 u - 124.5 leaves of each code: odd numbers from -7 to 7.
int32_t squares_left(const int8_t (&codes)[32]) {
  int16_t left[32];
  for (int i = 0; i < 32; ++i) left[i] = static_cast<int16_t>(2 * (codes[i] & 7) - 7);
  int32_t sum = 0;
  for (int i = 0; i < 32; ++i) sum += left[i] * left[i];
  return sum;
}

}  // namespace

float round_up(double x) {
  const auto rounded = static_cast<float>(x);
  return static_cast<double>(rounded) >= x
             ? rounded
             : std::nextafter(rounded, std::numeric_limits<float>::infinity());
}

CoarseBounds::CoarseBounds(int64_t num_panels, int64_t num_blocks) : num_blocks_(num_blocks) {
  HEADRACE_CHECK_LE(num_blocks, kMostBlocks);
  const auto rows = static_cast<size_t>(num_panels * kPanelRows);
  row_norms_.resize(rows);
  block_units_.resize(rows);
  weights_.resize(rows);
  block_norms_.resize(rows * static_cast<size_t>(num_blocks));
}

void CoarseBounds::set_row(int64_t row, const std::byte* blocks) {
  std::array<double, kMostBlocks> norms;
  const auto num_blocks = static_cast<size_t>(num_blocks_);
  double weights = 0;
  double squares = 0;
  double largest = 0;
  for (size_t b = 0; b < num_blocks; ++b) {
    BlockQ8_0 block;
    std::memcpy(&block, blocks + b * sizeof(block), sizeof(block));
    const auto d = static_cast<double>(f16_to_f32(block.d));
    // As large as codes get: the norm only tells how far off roundings may be.
    weights += 32.0 * 128.0 * 128.0 * d * d;
    const double square = 0.25 * static_cast<double>(squares_left(block.qs)) * d * d;
    norms[b] = square;
    largest = std::max(largest, square);
    squares += square;
  }
  const auto at = static_cast<size_t>(row);
  // NaN counts as infinite.
  weights_[at] = weights < kInf ? std::sqrt(weights) * kNormSlack : kInf;
  if (!(weights < kInf)) return;
  row_norms_[at] = round_up(std::sqrt(squares) * kNormSlack);
  const float unit = round_up(std::sqrt(largest) / 255 * kNormSlack);
  block_units_[at] = unit;
  if (unit == 0.0F) return;
  const double inverse = kNormSlack / static_cast<double>(unit);
  for (size_t b = 0; b < num_blocks; ++b) {
    // Rounded up; 255 units are as much as the largest.
    norms[b] = std::min(std::sqrt(norms[b]) * inverse + 1.0, 255.0);
  }
  uint8_t* const out =
      block_norms_.data() + row / kPanelRows * num_blocks_ * kPanelRows + row % kPanelRows;
  for (size_t b = 0; b < num_blocks; ++b) {
    out[b * kPanelRows] = static_cast<uint8_t>(static_cast<int>(norms[b]));
  }
}

void CoarseBounds::finish() {
  for (const double weights : weights_) largest_weights_ = std::max(largest_weights_, weights);
  for (const float norm : row_norms_) {
    largest_row_norm_ = std::max(largest_row_norm_, static_cast<double>(norm));
  }
  weights_ = {};
}

size_t CoarseBounds::bytes() const {
  return (row_norms_.size() + block_units_.size()) * sizeof(float) + block_norms_.size();
}

}  // namespace headrace
