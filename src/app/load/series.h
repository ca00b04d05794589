// A load over time, in as many pieces as a plot has room for. Pure arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "app/load/record.h"

namespace headrace {

/// Means over one piece of time.
struct LoadBucket {
  double seconds = 0;  ///< its end, since the load began
  double running = 0;
  double waiting = 0;      ///< in the engine or before it
  double output_rate = 0;  ///< tokens a second
  double prompt_rate = 0;  ///< tokens computed of prompts, a second
  double kv_usage = 0;
  double slot_utilisation = 1;  ///< while the cache held anything; else 1
};

/// `num_buckets` pieces of the same length, from the beginning to `seconds`. What a step computed
/// counts evenly over the time since the step before.
std::vector<LoadBucket> load_series(const std::vector<LoadSample>& samples, double seconds,
                                    size_t num_buckets);

}  // namespace headrace
