// What a step of a model must read and compute at the least, and how fast a machine of given limits
// could do that: a roofline. Pure arithmetic. Must not know how figures are measured or shown.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/kv_view.h"
#include "model/model.h"

namespace headrace {

/// The rows of one step.
struct StepShape {
  int64_t num_sequences = 1;
  int64_t rows = 1;            ///< of each sequence
  int64_t first_position = 0;  ///< of its first row
  int64_t logit_rows = 1;      ///< over all sequences; of one only the largest logit is wanted
};

struct Work {
  double bytes = 0;  ///< packed weights, and keys and values of earlier steps
  double macs = 0;   ///< multiply-adds of weight matrices and of attention

  Work& operator+=(const Work& other) {
    bytes += other.bytes;
    macs += other.macs;
    return *this;
  }
};

struct MachineLimits {
  double read_bytes_per_second = 0;
  double macs_per_second = 0;

  double read_seconds(const Work& work) const { return work.bytes / read_bytes_per_second; }
  double compute_seconds(const Work& work) const { return work.macs / macs_per_second; }
};

class StepCost {
 public:
  /// `attention_length`: query heads * head size. `caches`: one a layer.
  StepCost(const WeightWork& weights, std::vector<CacheSpec> caches, KvType kv_type,
           int64_t attention_length);

  /// Every query sees the keys up to its own, in window layers those of the window.
  Work of(const StepShape& step) const;

 private:
  WeightWork weights_;
  std::vector<CacheSpec> caches_;
  KvType kv_type_;
  int64_t attention_length_;
};

}  // namespace headrace
