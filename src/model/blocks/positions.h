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
  enum class Scaling : uint8_t { none, linear, dynamic, llama3, yarn, longrope };

  double base = 10000;
  int64_t dims = 0;  ///< even; features past it are not rotated
  Scaling scaling = Scaling::none;
  double factor = 1;             ///< how far the context was stretched
  int64_t original_context = 0;  ///< the context before (all but linear)
  double low_freq_factor = 1;    ///< llama3
  double high_freq_factor = 4;   ///< llama3
  double beta_fast = 32;         ///< yarn: turns over the original context
  double beta_slow = 1;          ///< yarn
  bool truncates = true;         ///< yarn: the ramp begins and ends at whole pairs
  double attention_factor = 1;   ///< yarn, longrope: factor of the rotated features

  bool operator==(const RopeConfig&) const = default;
};

/// 0.1 ln(factor) + 1, or 1 for factors up to 1 (YaRN, arXiv:2309.00071, section 3.4).
double yarn_attention_factor(double factor);

/// The dims / 2 frequencies. `divisors` (empty, or one a pair) divide them afterwards: GGUF files
/// of Llama 3 carry that model's scaling as such a tensor, "rope_freqs.weight". Formulas as in
/// transformers' modeling_rope_utils (ROPE_INIT_FUNCTIONS: default, linear, llama3, yarn, and, by
/// divisors, longrope). Dynamic scaling: those of positions within the original context.
std::vector<float> rope_frequencies(const RopeConfig& config, std::span<const float> divisors);

/// With dynamic scaling: the base for a token at this position, as a text that ends there has it.
double dynamic_base(const RopeConfig& config, int64_t position);

/// The divisors of longrope for contexts up to the original one, and for longer ones
/// (arXiv:2402.13753); each one a pair.
struct LongRopeDivisors {
  std::vector<float> short_context, long_context;
};

/// The frequencies of one kind of layer, and the angles of a step's rows.
class Rope {
 public:
  Rope(Backend& backend, const RopeConfig& config, std::span<const float> divisors);
  Rope(Backend& backend, const RopeConfig& config, const LongRopeDivisors& divisors);

  int64_t num_pairs() const { return static_cast<int64_t>(inv_freq_.size()); }
  void reserve(int64_t max_rows);
  /// Sequences will have up to that many tokens: with longrope, what all tokens are rotated by.
  void set_context(int64_t max_tokens);
  /// Whether a context of that many tokens has longrope's other divisors.
  bool is_long_for(int64_t max_tokens) const {
    return !long_inv_freq_.empty() && max_tokens > config_.original_context;
  }
  /// Computes the angles [rows, 2 * num_pairs] of a step; they stay valid until the next call.
  Tensor angles(std::span<const int32_t> positions);

 private:
  /// With dynamic scaling, of a position past the original context.
  std::vector<float> stretched_frequencies(int32_t position) const;

  Backend* backend_;
  RopeConfig config_;
  std::vector<float> inv_freq_;       ///< of all positions, but with dynamic scaling
  std::vector<float> long_inv_freq_;  ///< longrope; else empty
  bool is_long_ = false;
  Buffer angles_;
};

}  // namespace headrace
