#include <algorithm>
#include <cmath>

#include "sampling/steps/steps.h"

namespace headrace {
namespace {

/// No token loses more, so that logits stay finite.
constexpr double kMostDry = 1e9;

double dry_penalty(const SamplingParams& params, double length) {
  const double exponent = length - static_cast<double>(params.dry_allowed_length);
  const double grown = std::pow(static_cast<double>(params.dry_base), exponent);
  return std::min(kMostDry, static_cast<double>(params.dry_multiplier) * grown);
}

/// Longer repeats cost no more than one of this length; at most `most`.
size_t longest_that_counts(const SamplingParams& params, size_t most) {
  double length = std::max(1.0, static_cast<double>(params.dry_allowed_length));
  if (params.dry_base > 1.0F) {
    const double room = std::log(kMostDry) - std::log(static_cast<double>(params.dry_multiplier));
    length += std::ceil(std::max(0.0, room) / std::log(static_cast<double>(params.dry_base)));
  }
  return length < static_cast<double>(most) ? static_cast<size_t>(length) : most;
}

}  // namespace

void apply_dry(const SamplingParams& params, std::span<const TokenId> history, LogitEdits& edits) {
  if (params.dry_penalty_last_n >= 0) {
    const auto last = static_cast<size_t>(params.dry_penalty_last_n);
    history = history.last(std::min(history.size(), last));
  }
  if (history.size() < 2) return;
  const auto is_breaker = [&](TokenId id) {
    return params.dry_breakers != nullptr &&
           std::binary_search(params.dry_breakers->begin(), params.dry_breakers->end(), id);
  };
  // Read from its end on, the history begins with the suffix whose repeats are looked for.
  const auto back = [&](size_t i) { return history[history.size() - 1 - i]; };
  const size_t most = longest_that_counts(params, history.size() - 1);
  size_t suffix = 0;
  while (suffix < most && !is_breaker(back(suffix))) ++suffix;
  const auto least = static_cast<size_t>(std::max(params.dry_allowed_length, 1));
  if (suffix < least) return;

  // The Z-algorithm (Gusfield 1997, section 1.4), cut to the suffix: how far the history from `i`
  // back agrees with its end; [begin, end) is the farthest stretch known to agree.
  std::vector<int64_t>& lengths = edits.lengths();
  lengths.resize(std::max(lengths.size(), suffix));
  size_t begin = 0;
  size_t end = 0;
  for (size_t i = 1; i < history.size(); ++i) {
    size_t length = i < end ? std::min(end - i, static_cast<size_t>(lengths[i - begin])) : 0;
    if (i + length >= end) {
      while (length < suffix && i + length < history.size() && back(i + length) == back(length)) {
        ++length;
      }
      begin = i;
      end = i + length;
    }
    if (i < suffix) lengths[i] = static_cast<int64_t>(length);
    if (length < least) continue;
    const TokenId next = back(i - 1);
    if (is_breaker(next)) continue;
    LogitEdit& edit = edits.of(next);
    edit.original = std::max(edit.original, static_cast<float>(length));  // a note, for now
  }
  for (LogitEdit& edit : edits.current_row()) {
    if (edit.original == 0) continue;
    edit.penalty += static_cast<float>(dry_penalty(params, static_cast<double>(edit.original)));
    edit.original = 0;
  }
}

}  // namespace headrace
