// Cuts a range into steps whose sizes are known to the compiler, so that tiles of sums stay in
// registers.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

/// f.operator()<n>(i) over [begin, end) in steps of kMost, then of what is left.
template <int kMost, class F>
HEADRACE_INLINE void in_steps(int64_t begin, int64_t end, F&& f) {
  for (; begin + kMost <= end; begin += kMost) f.template operator()<kMost>(begin);
  if constexpr (kMost > 1) {
    if (begin < end) in_steps<kMost - 1>(begin, end, f);
  }
}

}  // namespace
}  // namespace headrace
