// See series.h.
#include "app/load/series.h"

#include <algorithm>

namespace headrace {
namespace {

/// Calls `add(bucket, seconds of it)` for all that [begin, end) covers.
template <class Add>
void spread(size_t num_buckets, double width, double begin, double end, const Add& add) {
  auto i = static_cast<size_t>(std::max(begin / width, 0.0));
  for (; i < num_buckets; ++i) {
    const double from = std::max(begin, width * static_cast<double>(i));
    const double to = std::min(end, width * static_cast<double>(i + 1));
    if (to > from) add(i, to - from);
    if (width * static_cast<double>(i + 1) >= end) return;
  }
}

double time_of(const LoadSample& sample) {
  return 1e-9 * static_cast<double>(sample.ns);
}

}  // namespace

std::vector<LoadBucket> load_series(const std::vector<LoadSample>& samples, double seconds,
                                    size_t num_buckets) {
  std::vector<LoadBucket> out(num_buckets);
  if (seconds <= 0 || num_buckets == 0) return {};
  const double width = seconds / static_cast<double>(num_buckets);
  std::vector<double> slots(num_buckets);
  std::vector<double> held_seconds(num_buckets);
  for (size_t s = 0; s < samples.size(); ++s) {
    const LoadSample& sample = samples[s];
    const double begin = s == 0 ? 0 : time_of(samples[s - 1]);
    const double now = time_of(sample);
    const double end = s + 1 < samples.size() ? time_of(samples[s + 1]) : seconds;
    // The step that ended now.
    const double length = std::max(now - begin, 1e-9);
    const auto prompt_rows =
        static_cast<double>(sample.num_rows - (sample.num_tokens - sample.num_first));
    spread(num_buckets, width, now - length, now, [&](size_t i, double part) {
      out[i].output_rate += static_cast<double>(sample.num_tokens) * part / length / width;
      out[i].prompt_rate += std::max(prompt_rows, 0.0) * part / length / width;
    });
    // What it left, until the next.
    spread(num_buckets, width, now, end, [&](size_t i, double part) {
      out[i].running += static_cast<double>(sample.num_running) * part / width;
      out[i].waiting +=
          static_cast<double>(sample.num_waiting + sample.num_held_back) * part / width;
      out[i].kv_usage += sample.kv_usage * part / width;
      if (sample.kv_usage > 0) {
        slots[i] += sample.slot_utilisation * part;
        held_seconds[i] += part;
      }
    });
  }
  for (size_t i = 0; i < num_buckets; ++i) {
    out[i].seconds = width * static_cast<double>(i + 1);
    if (held_seconds[i] > 0) out[i].slot_utilisation = slots[i] / held_seconds[i];
  }
  return out;
}

}  // namespace headrace
