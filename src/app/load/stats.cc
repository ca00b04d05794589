// See stats.h.
#include "app/load/stats.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace headrace {

double percentile(const std::vector<double>& sorted, double p) {
  HEADRACE_CHECK(!sorted.empty());
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double share = place - static_cast<double>(below);
  // A rounding must not pass the neighbour.
  return std::min(sorted[below] + share * (sorted[below + 1] - sorted[below]), sorted[below + 1]);
}

Distribution distribution(std::vector<double> values) {
  Distribution out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  out.count = static_cast<int64_t>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  out.mean = std::clamp(sum / static_cast<double>(values.size()), values.front(), values.back());
  out.min = values.front();
  out.p50 = percentile(values, 0.5);
  out.p90 = percentile(values, 0.9);
  out.p95 = percentile(values, 0.95);
  out.p99 = percentile(values, 0.99);
  out.max = values.back();
  for (int i = 0; i <= 100; ++i) out.percents.push_back(percentile(values, 0.01 * i));
  return out;
}

void TimeMean::add(double value, double seconds) {
  if (is_empty_) {
    min_ = max_ = value;
    is_empty_ = false;
  }
  sum_ += value * seconds;
  seconds_ += seconds;
  last_ = value;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

}  // namespace headrace
