// Positions that are added to the embedding: learned ones, and sinusoids.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace headrace {

/// A row a position.
struct AbsolutePositions {
  std::unique_ptr<Matrix> table;  ///< [positions, embedding]

  /// x [rows, embedding] += the rows of `positions`; changes scratch, of the shape of x.
  void add_to(Backend& backend, std::span<const int32_t> positions, const Tensor& x,
              const Tensor& scratch) const {
    backend.embed(*table, positions, 1.0F, scratch);
    backend.add(x, scratch);
  }
};

/// Rows `first` to `first + count` of a table of sinusoids, [count, width]: in row p feature i of
/// the first half is sin(p f_i), of the second half cos(p f_i), where f_i = 10000^(-i / (width / 2
/// - 1)); the last feature of an odd width is 0. As tensor2tensor has them (arXiv:1706.03762
/// interleaves the two). `width` >= 4.
std::vector<float> sinusoids(int64_t first, int64_t count, int64_t width);

}  // namespace headrace
