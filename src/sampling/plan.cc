// See plan.h.
#include "sampling/plan.h"

namespace headrace {

RowPlan plan_row(const SamplingParams& params, int32_t num_logprobs) {
  const bool has_penalties = params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
                             params.frequency_penalty != 0.0F;
  return {
      .greedy = params.temperature == 0.0F,
      .edits_logits = !params.logit_bias.empty() || (has_penalties && params.penalty_last_n != 0),
      .wants_logprobs = num_logprobs >= 0};
}

}  // namespace headrace
