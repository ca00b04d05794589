// The forward pass written down directly, in double precision, one position at a time, from the
// tensors as the file has them: what models and backends are checked against in tests.
#pragma once

#include <span>
#include <vector>

#include "headrace/token.h"
#include "tests/tiny_models.h"

namespace headrace::test {

/// What the direct forward pass must know beyond TinyOptions. `inv_freq`: of layers without a
/// window (and of all layers of llama); `inv_freq_window`: of gemma3's window layers.
struct DirectOptions {
  std::vector<double> inv_freq;
  std::vector<double> inv_freq_window;
  double rope_factor = 1;  ///< multiplies rotated features
};

/// base^(-2 i / dims) for each pair.
std::vector<double> plain_frequencies(double base, int64_t dims);

/// Logits [tokens.size()][vocab] of all positions.
std::vector<std::vector<double>> direct_logits(const TinyModel& model, const DirectOptions& options,
                                               std::span<const TokenId> tokens);

}  // namespace headrace::test
