// A block of 32 columns of packed weights, unpacked: what kernels multiply with rows of
// activations.
#pragma once

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

// Machine vectors of outputs that share a load of activations: two panels with AVX-512, the parts
// of one with AVX2 and NEON.
constexpr int kVectors = HEADRACE_LANES == 4 ? 4 : 2;
constexpr int64_t kPanelsTogether = kVectors * HEADRACE_LANES / kPanelRows;

/// How a format is multiplied.
template <class CodesKind, PanelScales kScalesKind, int kCodeOffset>
struct Layout {
  using Codes = CodesKind;
  static constexpr PanelScales kScales = kScalesKind;
  static constexpr int kOffset = kCodeOffset;  ///< weight 0 has this code; a power of 2, or 0
  static constexpr bool kHasMin = kScales == PanelScales::with_min || kScales == PanelScales::k_min;
  static constexpr bool kCoarse = false;
  static constexpr int kHalves =
      kScales == PanelScales::k_signed ? 2 : 1;  ///< scales of 32 columns
};

/// Whether codes are brought to 16 bits when they are unpacked for many rows.
template <class F>
constexpr bool kIsWidened = kWidensSigned&& F::Codes::kSigned;

/// 32 columns of kVectors * HEADRACE_LANES outputs.
template <class F>
struct alignas(64) Block {
  vu8 codes[kIsWidened<F> ? 16 : 8][kVectors];  ///< steps, or halves of steps of 16 bits
  vf scale[F::kHalves][kVectors];
  vf min[F::kHasMin ? kVectors : 1];
};

/// A vector of outputs' codes and scales for 32 columns.
template <class F>
struct BlockVector {
  vu8 codes[8];
  vf scale[F::kHalves];
  vf min;  ///< if F::kHasMin
};

constexpr int log2_of(int n) {
  return n <= 1 ? 0 : 1 + log2_of(n / 2);
}

/// The end of a half: sum + (scales of weights and activations) * dot.
HEADRACE_INLINE vf add_scaled(vi dot, vf scale, float x_scale, vf sum) {
  return mul_add_vector(__builtin_convertvector(dot, vf), scale * x_scale, sum);
}

/// The end of a block: sum + minimum * sum of the activations.
HEADRACE_INLINE vf add_min(vf min, float scaled_sum, vf sum) {
  return mul_add_vector(min, scaled_sum - vf{}, sum);
}

}  // namespace
}  // namespace headrace
