// See absolute_positions.h.
#include "model/blocks/absolute_positions.h"

#include <cmath>

#include "base/check.h"

namespace headrace {

std::vector<float> sinusoids(int64_t first, int64_t count, int64_t width) {
  HEADRACE_CHECK(width >= 4);
  const int64_t half = width / 2;
  const double step = std::log(10000.0) / static_cast<double>(half - 1);
  std::vector<float> table(static_cast<size_t>(count * width), 0.0F);
  for (int64_t i = 0; i < half; ++i) {
    // In float32, as the original: large angles depend on every bit of the frequency.
    const auto frequency = static_cast<float>(std::exp(-step * static_cast<double>(i)));
    for (int64_t row = 0; row < count; ++row) {
      const float angle = static_cast<float>(first + row) * frequency;
      float* out = table.data() + row * width;
      out[i] = static_cast<float>(std::sin(static_cast<double>(angle)));
      out[half + i] = static_cast<float>(std::cos(static_cast<double>(angle)));
    }
  }
  return table;
}

}  // namespace headrace
