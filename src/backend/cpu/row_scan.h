// Reads rows of logits for what choosing a token needs: the largest, the most likely, sums of
// weights, a draw over all. Owns the memory for it. One parallel region over chunks of rows; who
// finishes a row's last chunk merges them in order, so that results depend on the row alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/cpu/context.h"
#include "backend/token_logit.h"

namespace headrace {

/// One reading of one row: what is wanted, and the results.
struct RowScan {
  const float* row = nullptr;
  int32_t num_top = 0;
  TokenLogit* top = nullptr;  ///< [num_top]
  bool wants_exp_sum = false;
  float factor = 0;  ///< 1 / temperature, finite; 0: no weights are wanted
  double draw = -1;  ///< in [0, 1) of the total weight; < 0: none

  float largest = 0;        ///< NaN if any logit is; nothing below is set where it is not finite
  int32_t best = -1;        ///< the first with the largest; set where there is no NaN
  int32_t num_found = 0;    ///< of top: fewer than num_top where fewer are above -Inf
  double exp_sum = 0;       ///< sum(exp(logit - largest))
  double total_weight = 0;  ///< sum(exp((logit - largest) * factor))
  int32_t drawn = -1;
};

class RowScanner {
 public:
  explicit RowScanner(CpuContext& context) : context_(context) {}

  /// Memory for that many scans at once of rows of that many logits. Throws std::bad_alloc.
  void reserve(size_t max_scans, int64_t cols);
  /// All rows have `cols` logits. Makes memory where it was not reserved.
  void run(std::span<RowScan> scans, int64_t cols);

 private:
  struct Chunk {
    float largest = 0;
    double exp_sum = 0;  ///< relative to `largest`, as is `weight`
    double weight = 0;
  };
  /// A scan's share of the memory.
  struct Place {
    float* block_maxima = nullptr;  ///< [blocks of a row]
    float* lane_maxima = nullptr;   ///< [stripes of a row][16]
    std::span<Chunk> chunks;
  };

  Place place(size_t scan);
  void scan_chunk(const RowScan& scan, const Place& place, size_t chunk) const;
  void merge(RowScan& scan, const Place& place, int worker);
  int32_t first_of(const RowScan& scan, const Place& place) const;
  void find_top(RowScan& scan, const Place& place, int worker);
  float bound_of_top(const RowScan& scan, const Place& place, float* scratch) const;
  int32_t draw(const RowScan& scan, const Place& place) const;

  CpuContext& context_;
  int64_t cols_ = 0;  ///< of the rows that the memory is shared out for
  size_t num_chunks_ = 0;
  size_t max_scans_ = 0;
  std::unique_ptr<std::atomic<size_t>[]> chunks_left_;  ///< by scan
  std::vector<float> block_maxima_;                     ///< by scan, as the next two
  std::vector<float> lane_maxima_;
  std::vector<Chunk> chunks_;
  std::vector<TokenLogit> collected_;  ///< by worker
  std::vector<float> groups_;          ///< by worker
};

}  // namespace headrace
