// See plan.h.
#include "sampling/plan.h"

#include <algorithm>

namespace headrace {
namespace {

/// Enough for min-p as a rule. Nuclei are larger.
constexpr int32_t kMinPTokens = 128;

int32_t tokens_to_try(const SamplingParams& params, int32_t max_top) {
  if (params.top_k > 0 && params.top_k <= max_top) return params.top_k;
  // The entropy is that of all tokens.
  if (params.typical_p < 1.0F) return 0;
  if (params.top_k == 0 && params.top_p < 1.0F) return max_top;
  if (params.top_k == 0) return std::min(kMinPTokens, max_top);
  // Of k tokens that are not at hand the weight is not known; min-p needs only the largest.
  return params.top_p == 1.0F && params.min_p > 0.0F ? std::min(kMinPTokens, max_top) : 0;
}

}  // namespace

RowPlan plan_row(const SamplingParams& params, int32_t num_logprobs, int32_t max_top) {
  RowPlan plan;
  plan.greedy = params.temperature == 0.0F;
  plan.has_penalties = params.penalty_last_n != 0 &&
                       (params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
                        params.frequency_penalty != 0.0F);
  plan.wants_logprobs = num_logprobs >= 0;
  plan.has_dry = params.dry_multiplier > 0.0F && params.dry_penalty_last_n != 0;
  if (plan.greedy) return plan;
  plan.mirostat = params.mirostat;
  if (plan.mirostat != 0) {
    plan.num_top = max_top;
    plan.wants_total = plan.mirostat == 2;
    return plan;
  }
  // No two tokens are likelier than a half.
  plan.has_xtc = params.xtc_probability > 0.0F && params.xtc_threshold <= 0.5F;
  const bool keeps_all =
      params.top_k == 0 && params.typical_p == 1.0F && params.top_p == 1.0F && params.min_p == 0.0F;
  plan.draws_over_all = keeps_all && !plan.has_xtc;
  if (keeps_all) return plan;
  plan.num_top = tokens_to_try(params, max_top);
  plan.wants_total = params.top_k == 0 && params.typical_p == 1.0F && params.top_p < 1.0F;
  return plan;
}

}  // namespace headrace
