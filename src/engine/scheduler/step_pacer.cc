// See step_pacer.h.
#include "engine/scheduler/step_pacer.h"

#include <algorithm>

namespace headrace {
namespace {

/// Of a new measurement, in what is believed.
constexpr double kWeight = 0.25;
/// Fewer rows are not worth a step's fixed costs.
constexpr int64_t kFewestRows = 8;
/// Tried while nothing is known.
constexpr int64_t kFirstRows = 16;

void mix(double& known, double measured) {
  known = known == 0 ? measured : known + kWeight * (measured - known);
}

}  // namespace

bool StepPacer::knows(int64_t num_decoding) const {
  return decode_ns_ > 0 &&
         std::max(num_decoding, num_decoding_) <= std::min(num_decoding, num_decoding_) * 3 / 2 + 1;
}

int64_t StepPacer::prompt_rows(int64_t num_decoding, int64_t most) const {
  if (max_slowdown_ <= 0 || num_decoding == 0) return most;
  if (!knows(num_decoding)) return 0;
  if (row_ns_ <= 0) return std::min(most, kFirstRows);
  const double spare_ns = (max_slowdown_ - 1) * decode_ns_;
  const auto rows = static_cast<int64_t>(std::min(spare_ns / row_ns_, 1e6));
  return std::clamp(rows, std::min(kFewestRows, most), most);
}

void StepPacer::observe(int64_t num_decoding, int64_t num_prompt_rows, int64_t ns) {
  if (num_decoding == 0) return;
  if (num_prompt_rows == 0) {
    if (!knows(num_decoding)) decode_ns_ = 0;
    mix(decode_ns_, static_cast<double>(ns));
    num_decoding_ = num_decoding;
  } else if (knows(num_decoding)) {
    const double added = std::max(static_cast<double>(ns) - decode_ns_, 0.02 * decode_ns_);
    mix(row_ns_, added / static_cast<double>(num_prompt_rows));
  }
}

}  // namespace headrace
