// How one request's tokens are chosen: its parameters as a chain of steps. Must not know models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/request.h"
#include "headrace/result.h"
#include "sampling/candidates.h"
#include "sampling/plan.h"
#include "sampling/steps/steps.h"

namespace headrace {

/// A chosen token; the log-probabilities are set if asked for.
struct SampledToken {
  TokenId id = -1;
  float logprob = 0;
  std::vector<TokenLogprob> top;
};

/// Working memory, shared by all rows that one thread samples.
struct ChainScratch {
  std::vector<float> logits;
  Candidates candidates;
  PenaltyScratch penalties;
};

class Chain {
 public:
  /// `request` must be valid (see validate) and outlive the chain. `end_tokens` are those that end
  /// the request: they are masked until it has min_tokens. `choice` tells the completions of one
  /// request apart.
  Chain(const Request& request, std::vector<TokenId> end_tokens, uint64_t seed, uint64_t choice);

  /// What the backend must provide for a token that follows `num_generated` others.
  bool argmax_is_enough(int64_t num_generated) const {
    return plan_.argmax_is_enough(is_masked(num_generated));
  }

  /// Chooses the token after `history`, a pure function of its arguments: the draw depends on seed,
  /// choice and position only. Errors: internal (NaN, +Inf or no finite logits of the model),
  /// invalid_argument (the request's bias, penalties and masks leave no token).
  Result<SampledToken> choose(std::span<const float> logits, const TokenHistory& history,
                              ChainScratch& scratch) const;

  uint64_t seed() const { return seed_; }

 private:
  bool is_masked(int64_t num_generated) const {
    return num_generated < request_->stop.min_tokens && !end_tokens_.empty();
  }
  Result<TokenId> choose_id(std::span<const float> logits, int64_t position,
                            Candidates& candidates) const;

  const Request* request_;
  std::vector<TokenId> end_tokens_;
  uint64_t seed_;
  uint64_t choice_;
  RowPlan plan_;
};

}  // namespace headrace
