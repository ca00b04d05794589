// See candidates.h.
#include "sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace {

void Candidates::assign(std::span<const float> logits, float least) {
  clear();
  largest_ = -std::numeric_limits<float>::infinity();
  const float above = std::nextafter(least, -std::numeric_limits<float>::infinity());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > above)) continue;
    list_.push_back({static_cast<TokenId>(i), logits[i]});
    largest_ = std::max(largest_, logits[i]);
  }
}

void Candidates::assign_most_likely(std::span<const TokenLogit> tokens, bool is_all) {
  clear();
  for (const TokenLogit& token : tokens) list_.push_back({token.id, token.logit});
  num_sorted_ = list_.size();
  is_part_ = !is_all;
  if (!tokens.empty()) largest_ = tokens.front().logit;
}

void Candidates::clear() {
  list_.clear();
  num_sorted_ = 0;
  is_part_ = false;
  temperature_ = 1.0F;
  total_.reset();
}

double Candidates::weigh(Candidate& one) const {
  if (one.weight < 0) one.weight = std::exp(distance(one.logit));
  return one.weight;
}

void Candidates::ensure_weights() {
  for (Candidate& one : list_) weigh(one);
}

double Candidates::total_weight() {
  if (!total_) {
    double total = 0;
    for (Candidate& one : list_) total += weigh(one);
    total_ = total;
  }
  return *total_;
}

void Candidates::sort_first(size_t count) {
  count = std::min(count, list_.size());
  if (count <= num_sorted_) return;
  const auto begin = list_.begin() + static_cast<std::ptrdiff_t>(num_sorted_);
  const auto end = list_.begin() + static_cast<std::ptrdiff_t>(count);
  if (end != list_.end()) std::nth_element(begin, end, list_.end(), more_likely);
  std::sort(begin, end, more_likely);
  num_sorted_ = count;
}

void Candidates::keep_first(size_t count) {
  list_.resize(count);
  num_sorted_ = std::min(num_sorted_, count);
  is_part_ = false;
  total_.reset();
}

void Candidates::shorten() {
  is_part_ = false;
  total_.reset();
  num_sorted_ = 0;
}

void Candidates::cut() {
  shorten();
  sort_first(list_.size());
}

}  // namespace headrace
