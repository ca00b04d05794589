// Rotary position embedding: from a config to the frequency of each pair of features. Must not know
// files or a particular model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace headrace {

/// Pair i of the first `dims` features of a head turns by position * frequency(i). Without scaling
/// frequency(i) = base^(-2 i / dims) (RoFormer, arXiv:2104.09864).
struct RopeConfig {
  enum class Scaling : uint8_t { none, linear, llama3, yarn };

  double base = 10000;
  int64_t dims = 0;  ///< even; features past it are not rotated
  Scaling scaling = Scaling::none;
  double factor = 1;             ///< how far the context was stretched
  int64_t original_context = 0;  ///< llama3, yarn: the context before
  double low_freq_factor = 1;    ///< llama3
  double high_freq_factor = 4;   ///< llama3
  double beta_fast = 32;         ///< yarn: turns over the original context
  double beta_slow = 1;          ///< yarn
  double attention_factor = 1;   ///< yarn: factor of the rotated features
};

/// 0.1 ln(factor) + 1, or 1 for factors up to 1 (YaRN, arXiv:2309.00071, section 3.4).
double yarn_attention_factor(double factor);

/// The dims / 2 frequencies. `divisors` (empty, or one a pair) divide them afterwards: GGUF files
/// of Llama 3 carry that model's scaling as such a tensor, "rope_freqs.weight". Formulas as in
/// transformers' modeling_rope_utils (ROPE_INIT_FUNCTIONS: default, linear, llama3, yarn).
std::vector<float> rope_frequencies(const RopeConfig& config, std::span<const float> divisors);

/// The frequencies of one kind of layer, and the angles of a step's rows.
class Rope {
 public:
  Rope(Backend& backend, const RopeConfig& config, std::span<const float> divisors);

  int64_t num_pairs() const { return static_cast<int64_t>(inv_freq_.size()); }
  void reserve(int64_t max_rows);
  /// Computes the angles [rows, 2 * num_pairs] of a step; they stay valid until the next call.
  Tensor angles(std::span<const int32_t> positions);

 private:
  Backend* backend_;
  std::vector<float> inv_freq_;
  float attention_factor_;
  Buffer angles_;
};

}  // namespace headrace
