// What the patterns of a file may spend on one text, so that none of them can hang a process. Owns
// the time that was spent.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace headrace::text {

/// While it lives, all patterns that this thread runs have together `most` processor time, and
/// another second for each MiB of `num_bytes`. One inside of another changes nothing.
class RegexBudget {
 public:
  explicit RegexBudget(size_t num_bytes, std::chrono::nanoseconds most = std::chrono::seconds(5));
  RegexBudget(const RegexBudget&) = delete;
  RegexBudget& operator=(const RegexBudget&) = delete;
  ~RegexBudget();

  /// Looks at the clock; says how long the thread has computed. Throws EncodeFault
  /// (resource_exhausted), with the pattern, where the time of the thread's budget has passed.
  static std::chrono::nanoseconds check(std::string_view pattern);

 private:
  bool is_outermost_;
};

}  // namespace headrace::text
