// What a row needs from the backend before a token can be chosen for it. Decided once a request.
#pragma once

#include <cstdint>

#include "headrace/request.h"

namespace headrace {

struct RowPlan {
  bool greedy = false;        ///< temperature 0: the largest logit, nothing drawn
  bool edits_logits = false;  ///< bias or penalties
  bool wants_logprobs = false;

  /// The backend's argmax decides; the row of logits is not read. `masked`: tokens are forbidden.
  bool argmax_is_enough(bool masked) const {
    return greedy && !edits_logits && !wants_logprobs && !masked;
  }
};

RowPlan plan_row(const SamplingParams& params, int32_t num_logprobs);

}  // namespace headrace
