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
  int64_t vocab_size = 0;                ///< logits of the row
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
  /// seed, choice and position only. Mirostat's depends on the tokens that this chain chose before,
  /// too; choosing again after the same history is no further step of it. Errors: internal (NaN,
  /// +Inf or no finite logits of the model), invalid_argument (the request's bias, penalties and
  /// masks leave no token).
  Result<SampledToken> choose(const RowAnswer& row, const TokenHistory& history,
                              Candidates& candidates);

  uint64_t seed() const { return seed_; }

 private:
  bool is_masked(const TokenHistory& history) const;
  enum class Draw : uint8_t { token, xtc };
  uint64_t random_bits(const TokenHistory& history, Draw draw) const;
  bool wants_xtc(const TokenHistory& history) const;
  double mirostat_mu(const TokenHistory& history);
  Result<TokenLogit> choose_id(const RowAnswer& row, const TokenHistory& history,
                               Candidates& candidates);
  /// Below it are tokens that the steps drop whatever the others are.
  float least_logit(const RowAnswer& row, const TokenHistory& history);
  void apply_steps(const RowAnswer& row, const TokenHistory& history, Candidates& candidates);
  void learn(const TokenLogit& chosen, Candidates& candidates);
  void set_logprobs(const RowAnswer& row, float logit, SampledToken& token) const;

  const Request* request_;
  std::vector<TokenId> end_tokens_;
  uint64_t seed_;
  uint64_t choice_;
  RowPlan plan_;

  /// How much surprise mirostat allows, in bits.
  struct Mirostat {
    size_t position = 0;  ///< of the token that was chosen last
    double mu = 0;        ///< before it
    double next_mu = 0;   ///< after it
  };
  Mirostat mirostat_;
};

}  // namespace headrace
