// See adapter_memory.h.
#include "model/adapters/adapter_memory.h"

#include <algorithm>

namespace headrace {

void AdapterMemory::reserve(Backend& backend, int64_t max_rows, int64_t max_logit_rows) {
  if (sizes_.largest_rank == 0) return;
  if (max_rows > max_rows_) {
    low_ = backend.allocate(DType::f32, max_rows, kMostAdapted * sizes_.largest_rank);
    added_ = backend.allocate(DType::f32, max_rows, sizes_.most_outputs);
    backend.reserve_rows(max_rows, sizes_.largest_rank);
    max_rows_ = max_rows;
  }
  if (max_logit_rows > max_logit_rows_) {
    added_logits_ = backend.allocate(DType::f32, max_logit_rows, sizes_.most_logits);
    low_logits_ = backend.allocate(DType::f32, max_logit_rows,
                                   sizes_.most_logits > 0 ? sizes_.largest_rank : 0);
    backend.reserve_rows(max_logit_rows, sizes_.largest_rank);
    max_logit_rows_ = max_logit_rows;
  }
  // As many as begin_step may be given: each row with the most adapters.
  logit_rows_.reserve(static_cast<size_t>(max_logit_rows_) * kMaxAdaptersOfRow);
  rows_step_.low = low_.view();
  rows_step_.added = added_.view();
  logits_step_.low = low_logits_.view();
  logits_step_.added = added_logits_.view();
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
