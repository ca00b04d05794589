// See chain.h. The order of the steps is documented in docs/sampling.md.
#include "sampling/chain.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/random.h"
#include "sampling/logprobs.h"

namespace headrace {
namespace {

// The candidate at `point` of the cumulative weights.
Result<TokenId> draw(Candidates& candidates, uint64_t bits) {
  const double point = to_unit_interval(bits) * candidates.total_weight();
  double reached = 0;
  TokenId last = -1;
  for (const Candidate& one : candidates.all()) {
    reached += one.weight;
    if (reached > point) return one.id;
    if (one.weight > 0) last = one.id;
  }
  if (last < 0) {
    return Error{ErrorCode::internal, "the sampling steps left no token to choose", "", ""};
  }
  return last;  // only rounding leads here
}

}  // namespace

Chain::Chain(const Request& request, std::vector<TokenId> end_tokens, uint64_t seed,
             uint64_t choice)
    : request_(&request),
      end_tokens_(std::move(end_tokens)),
      seed_(seed),
      choice_(choice),
      plan_(plan_row(request.sampling, request.num_logprobs)) {}

Result<SampledToken> Chain::choose(std::span<const float> logits, const TokenHistory& history,
                                   ChainScratch& scratch) const {
  HEADRACE_TRY(check_logits(logits));
  SampledToken out;
  if (request_->num_logprobs > 0) {
    out.top = top_logprobs(logits, static_cast<size_t>(request_->num_logprobs));
  }
  const auto position = static_cast<int64_t>(history.tokens.size());
  std::span<const float> edited = logits;
  if (const bool masked = is_masked(position - history.num_prompt_tokens);
      masked || plan_.edits_logits) {
    scratch.logits.assign(logits.begin(), logits.end());
    apply_logit_bias(request_->sampling.logit_bias, scratch.logits);
    if (plan_.edits_logits) {
      apply_penalties(request_->sampling, history, scratch.logits, scratch.penalties);
    }
    for (const TokenId id : end_tokens_) {
      if (masked) scratch.logits[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
    }
    edited = scratch.logits;
  }
  HEADRACE_ASSIGN(out.id, choose_id(edited, position, scratch.candidates));
  if (plan_.wants_logprobs) {
    const auto logit = static_cast<double>(logits[static_cast<size_t>(out.id)]);
    out.logprob = static_cast<float>(logit - log_sum_exp(logits));
  }
  return out;
}

Result<TokenId> Chain::choose_id(std::span<const float> logits, int64_t position,
                                 Candidates& candidates) const {
  const SamplingParams& params = request_->sampling;
  const TokenId best = argmax(logits);
  if (!std::isfinite(logits[static_cast<size_t>(best)])) {
    // The model's own logits were good: it is the request that spoilt them.
    return Error{ErrorCode::invalid_argument, "bias, penalties and masks leave no token to choose",
                 "", ""};
  }
  if (plan_.greedy) return best;
  candidates.assign(logits);
  if (params.temperature != 1.0F) apply_temperature(params.temperature, candidates);
  if (params.top_k > 0) apply_top_k(params.top_k, candidates);
  if (params.typical_p < 1.0F) apply_typical_p(params.typical_p, candidates);
  if (params.top_p < 1.0F) apply_top_p(params.top_p, candidates);
  if (params.min_p > 0.0F) apply_min_p(params.min_p, candidates);
  return draw(candidates, counter_random(seed_, choice_, static_cast<uint64_t>(position), 0));
}

}  // namespace headrace
