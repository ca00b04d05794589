// See chain.h. The order of the steps is documented in docs/sampling.md.
#include "sampling/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "base/random.h"
#include "sampling/logprobs.h"

namespace headrace {
namespace {

// The candidate at `point` of the cumulative weights.
Result<TokenLogit> draw(Candidates& candidates, uint64_t bits) {
  const double point = to_unit_interval(bits) * candidates.total_weight();
  double reached = 0;
  TokenLogit last{.id = -1};
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double weight = candidates.weight(i);
    if (weight > 0) last = {candidates.all()[i].id, candidates.all()[i].logit};
    reached += weight;
    if (reached > point) return last;
  }
  if (last.id < 0) {
    return Error{ErrorCode::internal, "the sampling steps left no token to choose", "", ""};
  }
  return last;  // only rounding leads here
}

/// As a distance (see Candidates), what mirostat 2.0 drops whatever the other tokens are.
double least_distance_of_mirostat(double mu, double total_weight) {
  // One token stays, however little surprise is allowed.
  return std::min(0.0, std::log(total_weight) - mu * std::numbers::ln2);
}

/// The same of top-p and min-p: most of a row, as a rule.
double least_distance(const SamplingParams& params, const RowSummary& summary, size_t size) {
  double least = -HUGE_VAL;
  if (params.top_k == 0 && params.typical_p == 1.0F) {
    if (params.min_p > 0.0F) least = std::log(static_cast<double>(params.min_p));
    // Tokens that would not add up to the rest of the total even if all had this weight; half of
    // it, which is far more than the total may be off by.
    const double rest = 1.0 - static_cast<double>(params.top_p);
    if (rest > 1e-4) {
      const double weight = 0.5 * rest * summary.total_weight / static_cast<double>(size);
      least = std::max(least, std::log(weight));
    }
  }
  return least;
}

/// The logit at a distance from the largest.
float logit_at(double distance, const SamplingParams& params, const RowSummary& summary) {
  // A little lower, for the roundings on the way.
  const double logit = static_cast<double>(summary.largest) +
                       (distance - 1e-3) * static_cast<double>(params.temperature);
  if (logit < -std::numeric_limits<float>::max()) return -std::numeric_limits<float>::infinity();
  return std::nextafter(static_cast<float>(logit), -std::numeric_limits<float>::infinity());
}

/// The model's row, from the edited one.
std::span<float> models_row(const RowAnswer& row) {
  const std::span<float> logits = row.read();
  for (const LogitEdit& edit : row.edits) logits[static_cast<size_t>(edit.id)] = edit.original;
  return logits;
}

}  // namespace

Chain::Chain(const Request& request, std::vector<TokenId> end_tokens, uint64_t seed,
             uint64_t choice, int32_t max_top)
    : request_(&request),
      end_tokens_(std::move(end_tokens)),
      seed_(seed),
      choice_(choice),
      plan_(plan_row(request.sampling, request.num_logprobs, max_top)) {
  mirostat_.next_mu = 2 * static_cast<double>(request.sampling.mirostat_tau);
}

RowQuery Chain::ask(const TokenHistory& history, LogitEdits& edits) const {
  edits.begin_row();
  apply_logit_bias(request_->sampling.logit_bias, edits);
  if (plan_.has_penalties) apply_penalties(request_->sampling, history, edits);
  if (plan_.has_dry) apply_dry(request_->sampling, history.tokens, edits);
  if (is_masked(history)) apply_mask(end_tokens_, edits);

  RowQuery query;
  query.wants_log_sum_exp = plan_.wants_logprobs;
  if (request_->num_logprobs <= kMaxTopLogits) {
    query.num_model_top = std::max(request_->num_logprobs, 0);
  }
  query.num_top = plan_.num_top;
  if (plan_.draws_over_all || plan_.wants_total) query.temperature = request_->sampling.temperature;
  if (plan_.draws_over_all) query.draw = to_unit_interval(random_bits(history, Draw::token));
  return query;
}

int32_t Chain::num_decisive(const TokenHistory& history) const {
  // Edits may bring up any token.
  if (plan_.wants_logprobs || plan_.has_penalties || plan_.has_dry || is_masked(history)) return 0;
  if (!request_->sampling.logit_bias.empty()) return 0;
  if (plan_.greedy) return 1;
  if (plan_.has_xtc || plan_.mirostat != 0) return 0;
  const int32_t top_k = request_->sampling.top_k;
  return top_k > 0 && top_k == plan_.num_top ? top_k : 0;
}

Result<SampledToken> Chain::choose(const RowAnswer& row, const TokenHistory& history,
                                   Candidates& candidates) {
  HEADRACE_TRY(check_logits(row.summary));
  SampledToken out;
  HEADRACE_ASSIGN(const TokenLogit chosen, choose_id(row, history, candidates));
  out.id = chosen.id;
  if (plan_.wants_logprobs) set_logprobs(row, chosen.logit, out);
  return out;
}

bool Chain::is_masked(const TokenHistory& history) const {
  const auto num_tokens = static_cast<int64_t>(history.tokens.size());
  return num_tokens - history.num_prompt_tokens < request_->stop.min_tokens;
}

uint64_t Chain::random_bits(const TokenHistory& history, Draw draw) const {
  return counter_random(seed_, choice_, history.tokens.size(), static_cast<uint64_t>(draw));
}

bool Chain::wants_xtc(const TokenHistory& history) const {
  return plan_.has_xtc && to_unit_interval(random_bits(history, Draw::xtc)) <
                              static_cast<double>(request_->sampling.xtc_probability);
}

double Chain::mirostat_mu(const TokenHistory& history) {
  if (mirostat_.position != history.tokens.size()) {
    mirostat_.position = history.tokens.size();
    mirostat_.mu = mirostat_.next_mu;
  }
  return mirostat_.mu;
}

void Chain::learn(const TokenLogit& chosen, Candidates& candidates) {
  const SamplingParams& params = request_->sampling;
  const double surprise =
      (std::log(candidates.total_weight()) - candidates.distance(chosen.logit)) / std::numbers::ln2;
  const double error = surprise - static_cast<double>(params.mirostat_tau);
  mirostat_.next_mu = mirostat_.mu - static_cast<double>(params.mirostat_eta) * error;
}

Result<TokenLogit> Chain::choose_id(const RowAnswer& row, const TokenHistory& history,
                                    Candidates& candidates) {
  const RowSummary& summary = row.summary;
  if (!std::isfinite(summary.largest)) {
    // The model's own logits were good: it is the request that spoilt them.
    return Error{ErrorCode::invalid_argument, "bias, penalties and masks leave no token to choose",
                 "", ""};
  }
  if (plan_.greedy) return TokenLogit{summary.best, summary.largest};
  if (plan_.draws_over_all) return TokenLogit{summary.drawn, summary.drawn_logit};
  const bool is_all = summary.top.size() < static_cast<size_t>(plan_.num_top);
  candidates.assign_most_likely(summary.top, is_all);
  if (plan_.wants_total) candidates.set_total_weight(summary.total_weight);
  if (plan_.num_top > 0) apply_steps(row, history, candidates);
  if (candidates.is_part()) {
    const std::span<const float> logits = row.read();
    candidates.assign(logits, least_logit(row, history));
    if (plan_.wants_total) candidates.set_total_weight(summary.total_weight);
    apply_steps(row, history, candidates);
  }
  auto chosen = draw(candidates, random_bits(history, Draw::token));
  if (plan_.mirostat != 0 && chosen.ok()) learn(*chosen, candidates);
  return chosen;
}

float Chain::least_logit(const RowAnswer& row, const TokenHistory& history) {
  const SamplingParams& params = request_->sampling;
  double least = -HUGE_VAL;
  if (plan_.mirostat == 2) {
    least = least_distance_of_mirostat(mirostat_mu(history), row.summary.total_weight);
  } else if (plan_.mirostat == 0) {
    least = least_distance(params, row.summary, static_cast<size_t>(row.vocab_size));
  }
  return logit_at(least, params, row.summary);
}

void Chain::apply_steps(const RowAnswer& row, const TokenHistory& history, Candidates& candidates) {
  const SamplingParams& params = request_->sampling;
  apply_temperature(params.temperature, candidates);
  if (plan_.mirostat == 1) {
    return apply_mirostat_1(mirostat_mu(history), row.vocab_size, candidates);
  }
  if (plan_.mirostat == 2) return apply_mirostat_2(mirostat_mu(history), candidates);
  if (params.top_k > 0) apply_top_k(params.top_k, candidates);
  if (params.typical_p < 1.0F) apply_typical_p(params.typical_p, candidates);
  if (params.top_p < 1.0F) apply_top_p(params.top_p, candidates);
  if (params.min_p > 0.0F) apply_min_p(params.min_p, candidates);
  if (!candidates.is_part() && wants_xtc(history)) apply_xtc(params.xtc_threshold, candidates);
}

void Chain::set_logprobs(const RowAnswer& row, float logit, SampledToken& token) const {
  for (const LogitEdit& edit : row.edits) {
    if (edit.id == token.id) logit = edit.original;
  }
  token.logprob = logprob_of(logit, row.summary.log_sum_exp);
  const auto read = [&] { return models_row(row); };
  token.top = model_top(row.summary, request_->num_logprobs, read);
}

}  // namespace headrace
