// What many measured times say. Pure arithmetic.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace {

/// The value below which a share `p` (0 to 1) of the values lies, interpolated between neighbours:
/// of n values, the one at place p * (n - 1) in order. `sorted` must not be empty.
double percentile(const std::vector<double>& sorted, double p);

struct Distribution {
  int64_t count = 0;  ///< 0: the rest says nothing
  double mean = 0;
  double min = 0;
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
  /// The percentiles 0, 1, ... 100.
  std::vector<double> percents;
};

Distribution distribution(std::vector<double> values);

/// The mean of something that changes at known times, and its extremes.
class TimeMean {
 public:
  /// It was `value` for `seconds`.
  void add(double value, double seconds);

  bool is_empty() const { return is_empty_; }
  double mean() const { return seconds_ > 0 ? sum_ / seconds_ : last_; }
  double min() const { return min_; }
  double max() const { return max_; }

 private:
  bool is_empty_ = true;
  double sum_ = 0;
  double seconds_ = 0;
  double last_ = 0;
  double min_ = 0;
  double max_ = 0;
};

}  // namespace headrace
