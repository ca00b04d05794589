// Where the time of a request went. Part of the public C++ API.
#pragma once

#include <cstdint>

namespace headrace {

/// Milliseconds and counts of one request.
struct RequestStats {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  ///< of the prompt, not computed again
  int64_t completion_tokens = 0;
  double queue_ms = 0;
  double prefill_ms = 0;  ///< from the first step to the first token
  double decode_ms = 0;   ///< from the first token to the last
  double sample_ms = 0;   ///< of which choosing tokens
  uint64_t seed = 0;      ///< the seed that was used

  double prefill_tokens_per_second() const {
    return prefill_ms > 0 ? 1e3 * static_cast<double>(prompt_tokens - cached_tokens) / prefill_ms
                          : 0;
  }
  double decode_tokens_per_second() const {
    return decode_ms > 0 ? 1e3 * static_cast<double>(completion_tokens - 1) / decode_ms : 0;
  }
};

}  // namespace headrace
