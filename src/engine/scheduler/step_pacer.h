// How many prompt tokens a step may take so that those who generate do not wait much longer for
// their next token than without them. Learns from how long steps took. Must not know sequences.
#pragma once

#include <cstdint>

namespace headrace {

class StepPacer {
 public:
  /// The slow ones among the steps with prompts (the 99th percentile, about) may take
  /// `max_slowdown` times as long as the slow ones without; 0: no bound.
  explicit StepPacer(double max_slowdown) : max_slowdown_(max_slowdown) {}

  /// Prompt rows of a step in which `num_decoding` sequences generate, at most `most`. 0: a step
  /// without prompts is to be measured first.
  int64_t prompt_rows(int64_t num_decoding, int64_t most) const;
  /// A step took that long.
  void observe(int64_t num_decoding, int64_t num_prompt_rows, int64_t ns);

 private:
  /// A mean of the newest measurements; 0: there is none.
  struct Mean {
    double value = 0;
    int64_t count = 0;
    void add(double measured);
  };

  bool knows(int64_t num_decoding) const;

  const double max_slowdown_;
  Mean decode_ns_;            // of a step without prompts
  Mean decode_spread_ns_;     // how far such steps are from the mean
  int64_t num_decoding_ = 0;  // when that was measured
  Mean row_ns_;               // that a prompt row adds
  Mean spread_ns_;            // how far steps with prompts are from what was expected
};

}  // namespace headrace
