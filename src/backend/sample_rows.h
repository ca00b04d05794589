// What is asked of a row of logits before a token is chosen, and the small answer: a row itself
// (1 MB at a vocabulary of 262 144) stays where the backend has it. Must not know how tokens are
// chosen.
#pragma once

#include <cstdint>
#include <span>

#include "backend/token_logit.h"
#include "headrace/token.h"

namespace headrace {

/// The most that RowQuery::num_top and num_model_top may be.
inline constexpr int32_t kMaxTopLogits = 256;

/// More likely first; ties go to the smaller id. A strict order, so that every sort is the same
/// everywhere. Of any two with `id` and `logit`. No function, so that sorting calls it in place.
inline constexpr auto more_likely = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

/// A change of one token's logit; see edited_logit().
struct LogitEdit {
  TokenId id = 0;
  float bias = 0.0F;        ///< finite, or -Inf: the token cannot be chosen
  float repetition = 1.0F;  ///< > 0
  float penalty = 0.0F;     ///< finite
  float original = 0.0F;    ///< filled in by the backend: the logit before
};

/// In this order and rounding: + bias, then / repetition (* where not positive), then - penalty.
inline float edited_logit(const LogitEdit& edit, float logit) {
  logit += edit.bias;
  logit = logit > 0 ? logit / edit.repetition : logit * edit.repetition;
  return logit - edit.penalty;
}

struct RowQuery {
  std::span<LogitEdit> edits{};  ///< of distinct tokens, in any order

  // Of the model's row, before the edits.
  bool wants_log_sum_exp = false;
  int32_t num_model_top = 0;  ///< 0 to kMaxTopLogits

  // Of the edited row.
  int32_t num_top = 0;       ///< 0 to kMaxTopLogits
  float temperature = 0.0F;  ///< > 0: total_weight is wanted
  double draw = -1.0;        ///< in [0, 1): a token is drawn, which needs a temperature; < 0: none
};

/// What is wrong with a model's row.
enum class LogitFault : uint8_t {
  none,
  not_a_number,  ///< a NaN
  infinite,      ///< a +Inf
  none_finite,   ///< nothing but -Inf
};

/// The fault of a row on the host; `token` is set for NaN and +Inf.
LogitFault find_logit_fault(std::span<const float> row, TokenId& token);

/// Where there is a fault, only `fault` and `fault_token` are set, and edits are undone.
struct RowSummary {
  LogitFault fault = LogitFault::none;
  TokenId fault_token = -1;  ///< the smallest with NaN or +Inf

  // Of the model's row, before the edits.
  double log_sum_exp = 0;  ///< log(sum(exp(logit))), to about 1e-6
  /// The most likely tokens, ties to the smaller id; fewer where fewer are above -Inf. Valid until
  /// the next call, as is `top`.
  std::span<const TokenLogit> model_top{};

  // Of the edited row.
  TokenId best = -1;  ///< the token of the largest logit, ties to the smaller id
  float largest = 0;  ///< its logit; -Inf where the edits leave no token, +Inf where they overflow
  std::span<const TokenLogit> top{};
  /// sum(exp((logit - largest) / temperature)) over all tokens, to about 1e-6 of it.
  double total_weight = 0;
  /// The token at `draw` of the total, summed in the order of the ids. Never one whose logit is
  /// -Inf. -1 unless asked for.
  TokenId drawn = -1;
  float drawn_logit = 0;
};

}  // namespace headrace
