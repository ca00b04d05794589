// See head_norms.h.
#include "model/head_norms.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace headrace {
namespace {

// Far beyond what trained weights need, and far from the ends of float32.
constexpr double kLargestShift = 16;

}  // namespace

void balance_head_norms(std::span<float> q, std::span<float> k, int64_t rope_dims) {
  HEADRACE_CHECK_EQ(q.size(), k.size());
  const auto half = static_cast<size_t>(rope_dims / 2);
  const auto energy = [](float x) { return static_cast<double>(x) * x; };
  for (size_t i = 0; i < q.size(); ++i) {
    const bool is_rotated = i < 2 * half;
    if (is_rotated && i >= half) continue;  // done with its other half
    const size_t other = is_rotated ? i + half : i;
    const double ratio = (energy(q[i]) + energy(q[other])) / (energy(k[i]) + energy(k[other]));
    if (!std::isfinite(ratio) || ratio <= 0) continue;
    const double shift = std::round(std::log2(ratio) / 4);
    const int exponent = static_cast<int>(std::clamp(shift, -kLargestShift, kLargestShift));
    q[i] = std::ldexp(q[i], -exponent);
    k[i] = std::ldexp(k[i], exponent);
    if (other == i) continue;
    q[other] = std::ldexp(q[other], -exponent);
    k[other] = std::ldexp(k[other], exponent);
  }
}

}  // namespace headrace
