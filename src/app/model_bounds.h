// What the machine allows a model at the most, for a server that shows it beside what it does: the
// roofline of app/bench from a measurement short enough for every start. Must not know how figures
// are shown.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "app/step_cost.h"
#include "headrace/stats.h"

namespace headrace {

struct OpenedModel;

/// What steps take at the least.
struct BoundTime {
  double seconds = 0;
  bool is_by_compute = false;  ///< most of it by arithmetic, else by reading memory
};

/// Immutable. What was measured varies from start to start, so that a figure may come out a little
/// above its bound.
class ModelBounds {
 public:
  /// `chunk_tokens`: the most rows of a prompt in a step. Rates of `limits` are positive.
  ModelBounds(const WeightWork& weights, StepCost cost, const MachineLimits& limits,
              int64_t chunk_tokens);

  const MachineLimits& limits() const { return limits_; }

  /// Of `num_steps` of decoding one sequence, the first with its row at `first_position`.
  BoundTime decode_time(int64_t first_position, int64_t num_steps) const;
  /// Of the rows [first_position, first_position + rows) of a prompt, up to its first token.
  BoundTime prefill_time(int64_t first_position, int64_t rows) const;

  /// Tokens a second, all together, of `num_sequences` that decode with a row at `position` each.
  double decode_tokens_per_second(int64_t num_sequences = 1, int64_t position = 0) const;
  /// Of a prompt of one full step.
  double prefill_tokens_per_second() const;

  /// That the steps read: weights, keys and values.
  double bytes_of(const DecodeWork& work) const;
  /// What they read a second over what the machine can; 0 where there were no steps.
  double fraction_of_bandwidth(const DecodeWork& work) const;

 private:
  BoundTime time_of(const StepShape& step) const;

  WeightWork weights_;
  StepCost cost_;
  MachineLimits limits_;
  int64_t chunk_tokens_;
};

/// Measures the machine, and what it allows each model: in their order, null where that cannot be
/// known (no memory to measure with). Takes about 0.2 seconds however many there are. No engine may
/// run on their backends yet.
std::vector<std::shared_ptr<const ModelBounds>> measure_bounds(
    std::span<const std::unique_ptr<OpenedModel>> models);

}  // namespace headrace
