// What a row needs from the backend before a token can be chosen for it. Decided once a request.
#pragma once

#include <cstdint>

#include "headrace/request.h"

namespace headrace {

struct RowPlan {
  bool greedy = false;  ///< temperature 0: the largest logit, nothing drawn
  bool has_penalties = false;
  bool has_dry = false;
  bool has_xtc = false;
  int32_t mirostat = 0;  ///< its version; 0: none
  bool wants_logprobs = false;
  bool draws_over_all = false;  ///< no step cuts the tail: the backend draws
  bool wants_total = false;     ///< the weight of all tokens
  /// The most likely tokens that the steps are tried on first; 0: they need the whole row.
  int32_t num_top = 0;
};

/// `max_top`: of num_top.
RowPlan plan_row(const SamplingParams& params, int32_t num_logprobs, int32_t max_top);

}  // namespace headrace
