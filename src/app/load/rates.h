// How fast the model is without scheduler and requests, from the tests of app/bench, and how long
// the work of a load would take at that speed. Pure arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "app/bench.h"
#include "app/load/record.h"
#include "app/load/workload.h"

namespace headrace {

/// The tests that tell the rates for a workload: a prompt in steps of `chunk_tokens`, and decoding
/// by 1, 2, 4, ... `max_batch` sequences behind as many tokens as its requests have on average.
std::vector<BenchTest> rate_tests(const LoadSpec& spec, int64_t chunk_tokens, int64_t max_batch,
                                  int64_t context_length);

/// Tokens a second.
struct LoadRates {
  struct Decode {
    int64_t batch = 1;
    double rate = 0;  ///< over all sequences
  };
  double prefill = 0;
  std::vector<Decode> decode;  ///< smaller batches first; not empty

  /// Between two batches that were measured the time of a step grows evenly.
  double decode_rate(double batch) const;
};

/// As measured (medians).
LoadRates rates_of(const std::vector<BenchRow>& rows);
/// Their bounds: what the machine's limits allow.
LoadRates bounds_of(const std::vector<BenchRow>& rows);

/// What the engine did for the requests that ended well.
struct LoadWork {
  int64_t computed_tokens = 0;  ///< of prompts: what the prefix cache did not have
  int64_t decoded_tokens = 0;   ///< of answers but for each first one, which a prompt gives
};

LoadWork work_of(const std::vector<LoadRecord>& requests);

/// The seconds that `work` takes where all is decoded by `batch` at once, and prompts apart from
/// it.
double ideal_seconds(const LoadWork& work, const LoadRates& rates, int64_t batch);

/// The same at the batch that each step had.
double ideal_seconds_of_steps(const LoadWork& work, const LoadRates& rates,
                              const std::vector<LoadSample>& samples);

}  // namespace headrace
