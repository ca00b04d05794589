// Backend::sample_rows and argmax_rows on the CPU: edits, faults and answers around RowScanner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/row_scan.h"
#include "backend/sample_rows.h"
#include "tensor/tensor.h"

namespace headrace {

class RowSampler {
 public:
  explicit RowSampler(CpuContext& context) : context_(context), scanner_(context) {}

  void reserve(int64_t max_rows, int64_t cols);
  void sample(const Tensor& logits, std::span<const RowQuery> queries, std::span<RowSummary> out);
  void argmax(const Tensor& logits, std::span<TokenId> out);

 private:
  void sample_some(const Tensor& logits, std::span<const RowQuery> queries,
                   std::span<RowSummary> out, TokenLogit* top);
  void scan_models_rows(const Tensor& logits, std::span<const RowQuery> queries,
                        std::span<RowSummary> out, TokenLogit* top);
  void edit(const Tensor& logits, std::span<const RowQuery> queries);

  CpuContext& context_;
  RowScanner scanner_;
  std::vector<RowScan> scans_;   ///< of a region
  std::vector<TokenLogit> top_;  ///< by row: of the model's, then of the edited
};

}  // namespace headrace
