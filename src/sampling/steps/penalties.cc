#include <algorithm>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_penalties(const SamplingParams& params, const TokenHistory& history, LogitEdits& edits) {
  const size_t size = history.tokens.size();
  size_t first = 0;
  if (params.penalty_last_n >= 0 && static_cast<size_t>(params.penalty_last_n) < size) {
    first = size - static_cast<size_t>(params.penalty_last_n);
  }
  const auto num_prompt_tokens = static_cast<size_t>(history.num_prompt_tokens);
  // The other penalties leave the prompt alone.
  if (params.repetition_penalty == 1.0F) first = std::max(first, num_prompt_tokens);
  for (size_t i = first; i < size; ++i) {
    LogitEdit& edit = edits.of(history.tokens[i]);
    edit.repetition = params.repetition_penalty;
    if (i >= num_prompt_tokens) ++edit.penalty;  // a count, for now
  }
  for (LogitEdit& edit : edits.current_row()) {
    if (edit.penalty == 0) continue;
    edit.penalty = params.presence_penalty + params.frequency_penalty * edit.penalty;
  }
}

}  // namespace headrace
