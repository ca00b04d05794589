// How long the prompts or answers of a workload are. Pure arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/load/random.h"
#include "headrace/result.h"

namespace headrace {

inline constexpr int64_t kMaxLoadLength = int64_t{1} << 24;

/// A distribution of numbers of tokens, each at least 1. Of the unbounded ones the part within
/// three standard deviations (of the logarithm, for lognormal) is drawn from.
class LoadLength {
 public:
  /// "250", "16..512", "log:16..512" (twice as long is half as likely), "normal:256:64",
  /// "lognormal:256:128" (mean and standard deviation of the lengths themselves). Errors
  /// (invalid_argument) with the forms.
  static Result<LoadLength> parse(std::string_view text);

  LoadLength() = default;  ///< 1

  int64_t draw(LoadRandom& random) const;
  int64_t longest() const;
  double mean() const;  ///< before rounding and cutting
  /// As parse() reads it.
  std::string text() const;

 private:
  enum class Kind { fixed, uniform, log_uniform, normal, lognormal };

  LoadLength(Kind kind, double a, double b);
  double value_at(double deviations) const;

  Kind kind_ = Kind::fixed;
  double a_ = 1;      // the length; the least; the mean
  double b_ = 0;      // the most; the standard deviation
  double mu_ = 0;     // of the logarithm
  double sigma_ = 0;  // of the logarithm
};

}  // namespace headrace
