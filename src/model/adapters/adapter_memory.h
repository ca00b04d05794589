// What the products of a step need to know of its adapters. Must not know requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/low_rank.h"

namespace headrace {

class AdapterMemory {
 public:
  /// That a product of so many outputs may get something of this rank added; it has the rows with
  /// logits, or all.
  void expect(int64_t rank, int64_t outputs, bool makes_logits) {
    largest_rank_ = std::max(largest_rank_, rank);
    int64_t& most = makes_logits ? most_logits_ : most_outputs_;
    most = std::max(most, outputs);
  }

  /// For steps of that many rows; never shrinks. Throws std::bad_alloc.
  void reserve(Backend& backend, int64_t max_rows, int64_t max_logit_rows);

  /// At the begin of a step. `rows` must stay until its end; `logit_rows`: ascending.
  void begin_step(std::span<const AdapterRows> rows, std::span<const int32_t> logit_rows);

  /// Of products of all rows, and of those of the rows with logits. They stay where they are.
  const AdapterStep* of_rows() const { return &rows_step_; }
  const AdapterStep* of_logit_rows() const { return &logits_step_; }

 private:
  int64_t largest_rank_ = 0;
  int64_t most_outputs_ = 0;
  int64_t most_logits_ = 0;
  int64_t max_rows_ = 0;
  int64_t max_logit_rows_ = 0;
  Buffer low_, added_, low_logits_, added_logits_;
  std::vector<AdapterRows> logit_rows_;  ///< of the step
  AdapterStep rows_step_, logits_step_;
};

}  // namespace headrace
