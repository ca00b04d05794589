// What adapters add to the products of some rows (LoRA, arXiv:2106.09685): instead of x W^T a row
// gets x W^T + scale * (x A^T) B^T, with A and B of a small rank. Must not know models or files.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace headrace {

class Matrix;

/// An adapter's part of one product.
struct LowRank {
  const Matrix* down = nullptr;  ///< A, [rank, cols]; null: the adapter leaves the product as it is
  const Matrix* up = nullptr;    ///< B, [rows of the weight, rank]
  float scale = 1.0F;
};

/// Rows [first_row, first_row + num_rows) of a product's input use this adapter.
struct AdapterRows {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int32_t adapter = 0;    ///< index in LinearTask::adapters
  float strength = 1.0F;  ///< what it adds is multiplied by this
};

/// Of the products of a step that have equally many rows: which rows use which adapters, and memory
/// for what is computed on the way.
struct AdapterStep {
  std::span<const AdapterRows> rows{};  ///< a row that is in several gets the sum, in this order
  Tensor low{};                         ///< [rows, the ranks of the products of one input together]
  Tensor added{};                       ///< [rows, the largest number of outputs]
};

/// A row has at most so many adapters.
inline constexpr int64_t kMaxAdaptersOfRow = 16;
/// So many products with adapters may share an input.
inline constexpr int64_t kMostAdapted = 3;

}  // namespace headrace
