// What the records of a load say. Pure arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/load/record.h"
#include "app/load/series.h"
#include "app/load/slo.h"
#include "app/load/stats.h"
#include "headrace/stats.h"

namespace headrace {

struct LoadSummary {
  int64_t num_requests = 0;
  int64_t num_ok = 0;
  int64_t num_good = 0;                   ///< of these, that kept every bound asked for
  std::map<std::string, int64_t> errors;  ///< by error_code_name()
  double seconds = 0;                     ///< from the beginning to the last end
  double occupied_seconds = 0;            ///< of these, while the engine had a request

  // Of requests that ended well.
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  ///< of these, found in the prefix cache
  int64_t output_tokens = 0;
  int64_t num_preemptions = 0;
  Distribution ttft_ms, itl_ms, tpot_ms, e2e_ms, queue_ms;
  uint64_t answers_hash = 0;  ///< of all answers, whatever their order

  // The engine.
  int64_t num_steps = 0;
  int64_t num_failed_steps = 0;
  double tokens_per_step = 0;  ///< generated: the mean size of a batch
  double most_per_step = 0;
  double scheduling_us = 0;  ///< of a step
  double forward_ms = 0;
  double sampling_ms = 0;
  double prefix_hit_rate = 0;  ///< of the prompt tokens that were looked for
  std::array<int64_t, kNumMemoryRungs> rungs{};
  TimeMean running, waiting, kv_usage, slot_utilisation;
  double reading_share = 0;  ///< of one processor, that the load itself took

  std::vector<LoadBucket> series;

  double per_second(int64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

/// Whether a request kept the bounds: one that failed keeps none.
bool keeps(const LoadRecord& request, const LoadSlo& slo);

LoadSummary summarize_load(const LoadRecords& records, const LoadSlo& slo);

}  // namespace headrace
