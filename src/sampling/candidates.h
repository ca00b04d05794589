// The tokens that may still be chosen for one row. Owns the list; the steps shorten it. Reused from
// row to row, so that choosing does not allocate.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/token.h"

namespace headrace {

struct Candidate {
  TokenId id = 0;
  float logit = 0;
  double weight = 0;  ///< exp(logit - largest logit), once ensure_weights() ran
};

/// More likely first; ties go to the smaller id. A strict order, so that every sort is the same
/// everywhere.
bool more_likely(const Candidate& a, const Candidate& b);

class Candidates {
 public:
  /// All tokens whose logit is not -Inf, in the order of their ids.
  void assign(std::span<const float> logits);

  std::span<const Candidate> all() const { return list_; }
  std::vector<Candidate>& list() { return list_; }
  size_t size() const { return list_.size(); }

  /// Computes the weights unless they are there. Steps that change logits come before.
  void ensure_weights();
  /// Sum of the weights in the list's order.
  double total_weight();
  /// Brings the `count` most likely to the front, in order.
  void sort_first(size_t count);
  /// Keeps the first `count`.
  void keep_first(size_t count) { list_.resize(count); }

 private:
  std::vector<Candidate> list_;
  size_t num_sorted_ = 0;
  bool has_weights_ = false;
};

}  // namespace headrace
