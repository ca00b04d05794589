// What the products of a step need to know of its adapters. Must not know requests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/low_rank.h"
#include "model/adapters/adapter_sizes.h"

namespace headrace {

class AdapterMemory {
 public:
  /// See AdapterSizes.
  void expect(int64_t rank, int64_t outputs, bool makes_logits) {
    sizes_.expect(rank, outputs, makes_logits);
  }

  /// For steps of that many rows; never shrinks. Throws std::bad_alloc.
  void reserve(Backend& backend, int64_t max_rows, int64_t max_logit_rows);

  /// At the begin of a step. `rows` must stay until its end; `logit_rows`: ascending.
  void begin_step(std::span<const AdapterRows> rows, std::span<const int32_t> logit_rows);

  /// Of products of all rows, and of those of the rows with logits. They stay where they are.
  const AdapterStep* of_rows() const { return &rows_step_; }
  const AdapterStep* of_logit_rows() const { return &logits_step_; }

 private:
  AdapterSizes sizes_;
  int64_t max_rows_ = 0;
  int64_t max_logit_rows_ = 0;
  Buffer low_, added_, low_logits_, added_logits_;
  std::vector<AdapterRows> logit_rows_;  ///< of the step
  AdapterStep rows_step_, logits_step_;
};

}  // namespace headrace
