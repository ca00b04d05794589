// The kernels that look for tokens in a row of logits, as a table of functions; see kernel_table.h.
#pragma once

#include <cstdint>

#include "backend/token_logit.h"

namespace headrace {

/// Logits of one task. Part of the results: a row's sums are merged chunk by chunk.
inline constexpr int64_t kSampleChunk = 8192;
/// Logits whose largest is noted, so that most of a row need not be read twice.
inline constexpr int64_t kSampleBlock = 256;
/// Logits that share a vector of largest values, one a lane: each lane is a group of its own, in
/// which neighbours never meet.
inline constexpr int64_t kSampleStripe = 2048;

struct SamplingKernels {
  /// The largest of n values (at most kSampleChunk); NaN if any is NaN. Writes the largest of each
  /// block to block_maxima [ceil(n / kSampleBlock)] and of each lane of each stripe to lane_maxima
  /// [ceil(n / kSampleStripe)][16], -Inf where a lane has no value.
  float (*chunk_maxima)(const float* x, int64_t n, float* block_maxima, float* lane_maxima);

  /// sum(exp((x[i] - largest) * factor)): float32 within a block, its sums added in double. No
  /// value is above `largest`, which is finite; -Inf adds 0; 0 < factor, finite.
  double (*exp_sum)(const float* x, int64_t n, float largest, float factor);
  /// The first index at which that sum, in the order of the indices, is above `point`; the last one
  /// that adds anything where rounding leaves none; -1 where none does.
  int64_t (*exp_find)(const float* x, int64_t n, float largest, float factor, double point);

  /// Appends the values of x[begin, n) that are above `above` to out, in order, `count` of which
  /// are taken already; ids are indices. Stops before a block that might not fit `capacity`, and
  /// returns where (n: all done). begin is a multiple of kSampleBlock.
  int64_t (*collect_above)(const float* x, int64_t begin, int64_t n, const float* block_maxima,
                           float above, TokenLogit* out, int64_t capacity, int64_t* count);
};

}  // namespace headrace
