// See adapter_memory.h.
#include "model/adapters/adapter_memory.h"

namespace headrace {

void AdapterMemory::reserve(Backend& backend, int64_t max_rows, int64_t max_logit_rows) {
  const int64_t rows = std::max(max_rows, max_logit_rows);
  if (largest_rank_ == 0 || rows <= max_rows_) return;
  low_ = backend.allocate(DType::f32, rows, kMostAdapted * largest_rank_);
  added_ = backend.allocate(DType::f32, rows, most_outputs_);
  backend.reserve_rows(rows, largest_rank_);
  for (AdapterStep* step : {&rows_step_, &logits_step_}) {
    step->low = low_.view();
    step->added = added_.view();
  }
  logit_rows_.reserve(static_cast<size_t>(rows));
  max_rows_ = rows;
}

void AdapterMemory::begin_step(std::span<const AdapterRows> rows,
                               std::span<const int32_t> logit_rows) {
  logit_rows_.clear();
  for (const AdapterRows& part : rows) {
    const auto begin = std::ranges::lower_bound(logit_rows, part.first_row);
    const auto end = std::lower_bound(begin, logit_rows.end(), part.first_row + part.num_rows);
    if (begin == end) continue;
    AdapterRows& out = logit_rows_.emplace_back(part);
    out.first_row = begin - logit_rows.begin();
    out.num_rows = end - begin;
  }
  rows_step_.rows = rows;
  logits_step_.rows = logit_rows_;
}

}  // namespace headrace
