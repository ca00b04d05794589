// How many prompt tokens a step may take so that those who generate do not wait much longer for
// their next token than without them. Learns from how long steps took. Must not know sequences.
#pragma once

#include <cstdint>

namespace headrace {

class StepPacer {
 public:
  /// A step with prompts may take `max_slowdown` times as long as one without; 0: no bound.
  explicit StepPacer(double max_slowdown) : max_slowdown_(max_slowdown) {}

  /// Prompt rows of a step in which `num_decoding` sequences generate, at most `most`. 0: a step
  /// without prompts is to be measured first.
  int64_t prompt_rows(int64_t num_decoding, int64_t most) const;
  /// A step took that long.
  void observe(int64_t num_decoding, int64_t num_prompt_rows, int64_t ns);

 private:
  bool knows(int64_t num_decoding) const;

  const double max_slowdown_;
  double decode_ns_ = 0;      // of a step without prompts
  int64_t num_decoding_ = 0;  // when that was measured
  double row_ns_ = 0;         // that a prompt row adds
};

}  // namespace headrace
