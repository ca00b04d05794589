#include "sampling/steps/steps.h"

namespace headrace {

void apply_penalties(const SamplingParams& params, const TokenHistory& history,
                     std::span<float> logits, PenaltyScratch& scratch) {
  const size_t size = history.tokens.size();
  size_t first = 0;
  if (params.penalty_last_n >= 0 && static_cast<size_t>(params.penalty_last_n) < size) {
    first = size - static_cast<size_t>(params.penalty_last_n);
  }
  const auto last = history.tokens.subspan(first);
  scratch.num_generated.resize(logits.size());
  scratch.seen.resize(logits.size());
  for (size_t i = 0; i < last.size(); ++i) {
    if (first + i < static_cast<size_t>(history.num_prompt_tokens)) continue;
    ++scratch.num_generated[static_cast<size_t>(last[i])];
  }
  for (const TokenId token : last) {
    const auto id = static_cast<size_t>(token);
    if (scratch.seen[id]) continue;
    scratch.seen[id] = true;
    float& logit = logits[id];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (const uint32_t count = scratch.num_generated[id]; count > 0) {
      logit -= params.presence_penalty + params.frequency_penalty * static_cast<float>(count);
    }
  }
  for (const TokenId token : last) {
    scratch.num_generated[static_cast<size_t>(token)] = 0;
    scratch.seen[static_cast<size_t>(token)] = false;
  }
}

}  // namespace headrace
