// For the steps' tests: candidates from logits, and which ids are left.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "sampling/candidates.h"

namespace headrace {

inline Candidates candidates_of(const std::vector<float>& logits) {
  Candidates out;
  out.assign(logits);
  return out;
}

/// Logits whose probabilities are these.
inline Candidates candidates_with(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return candidates_of(logits);
}

inline std::vector<TokenId> ids_left(const Candidates& candidates) {
  std::vector<TokenId> ids;
  for (const Candidate& one : candidates.all()) ids.push_back(one.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace headrace
