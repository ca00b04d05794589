// See candidates.h.
#include "sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace {

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

void Candidates::assign(std::span<const float> logits) {
  list_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -std::numeric_limits<float>::infinity()) continue;
    list_.push_back({static_cast<TokenId>(i), logits[i], 0});
  }
  num_sorted_ = 0;
  has_weights_ = false;
}

void Candidates::ensure_weights() {
  if (has_weights_ || list_.empty()) return;
  float largest = list_.front().logit;
  for (const Candidate& one : list_) largest = std::max(largest, one.logit);
  for (Candidate& one : list_) {
    one.weight = std::exp(static_cast<double>(one.logit) - static_cast<double>(largest));
  }
  has_weights_ = true;
}

double Candidates::total_weight() {
  ensure_weights();
  double total = 0;
  for (const Candidate& one : list_) total += one.weight;
  return total;
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

}  // namespace headrace
