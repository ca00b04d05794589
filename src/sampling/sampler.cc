// See sampler.h.
#include "sampling/sampler.h"

#include "sampling/logprobs.h"

namespace headrace {

Sampler::Sampler(Backend& backend, int64_t max_rows, int64_t vocab_size)
    : backend_(backend), row_(static_cast<size_t>(vocab_size)) {
  const auto rows = static_cast<size_t>(max_rows);
  rows_.reserve(rows);
  queries_.reserve(rows);
  summaries_.reserve(rows);
  edits_.reserve(rows);
  candidates_.reserve(row_.size());
  backend.reserve_samples(max_rows, vocab_size);
}

void Sampler::clear() {
  rows_.clear();
  queries_.clear();
  edits_.clear();
}

void Sampler::add(Chain& chain, const TokenHistory& history) {
  rows_.push_back({&chain, history});
  queries_.push_back(chain.ask(history, edits_));
}

void Sampler::add_score(TokenId token, int32_t num_top) {
  rows_.push_back({.token = token, .num_top = num_top});
  // An edit that changes nothing, for its note of the logit.
  edits_.begin_row();
  edits_.of(token);
  RowQuery query;
  query.wants_log_sum_exp = true;
  if (num_top <= kMaxTopLogits) query.num_model_top = num_top;
  queries_.push_back(query);
}

void Sampler::run(const Tensor& logits) {
  logits_ = logits;
  for (size_t i = 0; i < queries_.size(); ++i) queries_[i].edits = edits_.row(i);
  summaries_.resize(queries_.size());
  backend_.sample_rows(logits, queries_, summaries_);
}

Result<SampledToken> Sampler::choose(size_t row) {
  const auto read = [&] {
    backend_.read_row(logits_, static_cast<int64_t>(row), row_);
    return std::span<float>(row_);
  };
  if (rows_[row].chain == nullptr) return score(row, read);
  return rows_[row].chain->choose({summaries_[row], queries_[row].edits, read, std::ssize(row_)},
                                  rows_[row].history, candidates_);
}

Result<SampledToken> Sampler::score(size_t row, FunctionRef<std::span<float>()> read) const {
  const RowSummary& summary = summaries_[row];
  HEADRACE_TRY(check_logits(summary));
  SampledToken out;
  out.id = rows_[row].token;
  out.logprob = logprob_of(queries_[row].edits.front().original, summary.log_sum_exp);
  out.top = model_top(summary, rows_[row].num_top, read);
  return out;
}

}  // namespace headrace
