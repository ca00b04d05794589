// See step_pacer.h.
#include "engine/scheduler/step_pacer.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

/// Of a new measurement, in a mean of more than 1 / kWeight of them.
constexpr double kWeight = 0.1;
/// From a mean to the slowest in a hundred, in mean distances from it: 2.9 for a normal
/// distribution.
constexpr double kSlow = 3;
/// One interruption says little of the next steps.
constexpr double kFarthest = 3;
/// Fewer rows are not worth a step's fixed costs.
constexpr int64_t kFewestRows = 4;
/// Tried while nothing is known.
constexpr int64_t kFirstRows = 16;

}  // namespace

void StepPacer::Mean::add(double measured) {
  ++count;
  if (count > 3) measured = std::min(measured, kFarthest * value);
  value += std::max(kWeight, 1.0 / static_cast<double>(count)) * (measured - value);
}

bool StepPacer::knows(int64_t num_decoding) const {
  return decode_ns_.count > 0 &&
         std::max(num_decoding, num_decoding_) <= std::min(num_decoding, num_decoding_) * 3 / 2 + 1;
}

int64_t StepPacer::prompt_rows(int64_t num_decoding, int64_t most) const {
  if (max_slowdown_ <= 0 || num_decoding == 0) return most;
  if (!knows(num_decoding)) return 0;
  if (!(row_ns_.value > 0)) return std::min(most, kFirstRows);
  const double slow_ns = decode_ns_.value + kSlow * decode_spread_ns_.value;
  const double spare_ns = max_slowdown_ * slow_ns - kSlow * spread_ns_.value - decode_ns_.value;
  const auto rows = static_cast<int64_t>(std::clamp(spare_ns / row_ns_.value, 0.0, 1e6));
  return std::clamp(rows, std::min(kFewestRows, most), most);
}

void StepPacer::observe(int64_t num_decoding, int64_t num_prompt_rows, int64_t ns) {
  if (num_decoding == 0) return;
  const auto taken_ns = static_cast<double>(ns);
  if (num_prompt_rows == 0) {
    if (!knows(num_decoding)) decode_ns_ = decode_spread_ns_ = {};
    num_decoding_ = num_decoding;
    decode_ns_.add(taken_ns);
    decode_spread_ns_.add(std::abs(taken_ns - decode_ns_.value));
  } else if (knows(num_decoding)) {
    const auto num_rows = static_cast<double>(num_prompt_rows);
    if (row_ns_.count > 0) {
      spread_ns_.add(std::abs(taken_ns - decode_ns_.value - num_rows * row_ns_.value));
    }
    // With prompts it does not take less: the first measurement was of a step that was held up.
    if (taken_ns < decode_ns_.value) decode_ns_.value = taken_ns;
    row_ns_.add(std::max(taken_ns - decode_ns_.value, 0.02 * decode_ns_.value) / num_rows);
  }
}

}  // namespace headrace
