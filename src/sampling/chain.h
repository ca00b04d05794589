// How one request's tokens are chosen: its parameters as a chain of steps. Must not know models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/sample_rows.h"
#include "base/function_ref.h"
#include "headrace/request.h"
#include "headrace/result.h"
#include "sampling/candidates.h"
#include "sampling/logit_edits.h"
#include "sampling/plan.h"
#include "sampling/steps/steps.h"

namespace headrace {

/// A chosen token; the log-probabilities are set if asked for.
struct SampledToken {
  TokenId id = -1;
  float logprob = 0;
  std::vector<TokenLogprob> top;
};

/// What a backend said about a row, and the row itself for the steps that need all of it.
struct RowAnswer {
  const RowSummary& summary;
  std::span<const LogitEdit> edits;
  FunctionRef<std::span<float>()> read;  ///< the edited row; expensive
};

class Chain {
 public:
  /// `request` must be valid (see validate) and outlive the chain. `end_tokens` are those that end
  /// the request: they are masked until it has min_tokens. `choice` tells the completions of one
  /// request apart. `max_top` bounds what is asked of the backend before the whole row is: it
  /// changes no token.
  Chain(const Request& request, std::vector<TokenId> end_tokens, uint64_t seed, uint64_t choice,
        int32_t max_top = kMaxTopLogits);

  /// What to ask about the row of logits after `history`. The edits are added to `edits`, whose
  /// current row they become; the query's own stay empty.
  RowQuery ask(const TokenHistory& history, LogitEdits& edits) const;

  /// How many of the model's largest logits decide the token after `history`, whatever the others
  /// are; 0: all are needed.
  int32_t num_decisive(const TokenHistory& history) const;

  /// Chooses the token after `history`, a pure function of row and history: the draw depends on
  /// seed, choice and position only. Errors: internal (NaN, +Inf or no finite logits of the model),
  /// invalid_argument (the request's bias, penalties and masks leave no token).
  Result<SampledToken> choose(const RowAnswer& row, const TokenHistory& history,
                              Candidates& candidates) const;

  uint64_t seed() const { return seed_; }

 private:
  bool is_masked(const TokenHistory& history) const;
  uint64_t random_bits(const TokenHistory& history) const;
  Result<TokenLogit> choose_id(const RowAnswer& row, const TokenHistory& history,
                               Candidates& candidates) const;
  void apply_steps(Candidates& candidates) const;
  void set_logprobs(const RowAnswer& row, float logit, SampledToken& token) const;

  const Request* request_;
  std::vector<TokenId> end_tokens_;
  uint64_t seed_;
  uint64_t choice_;
  RowPlan plan_;
};

}  // namespace headrace
