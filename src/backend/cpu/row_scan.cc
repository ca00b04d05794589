// See row_scan.h. A row is read once in full, in chunks that stay in the first cache for the second
// look that sums need. The most likely tokens then come from the few blocks that can hold them.
#include "backend/cpu/row_scan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "backend/sample_rows.h"
#include "base/check.h"
#include "base/checked.h"

namespace headrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
/// Tokens that a worker collects before it drops the least likely of them.
constexpr int64_t kCollected = 4096;
/// With several groups a token, a bound lets few more tokens through than are wanted.
constexpr int64_t kGroupsPerToken = 8;

static_assert(kCollected >= kMaxTopLogits + kSampleBlock);

int64_t blocks_of(int64_t cols) {
  return ceil_div(cols, kSampleBlock);
}

int64_t groups_of(int64_t cols) {
  return ceil_div(cols, kSampleStripe) * kPanelRows;
}

/// What a weight relative to a chunk's largest logit is worth relative to the row's.
double share(float chunk_largest, float largest, float factor) {
  return std::exp((static_cast<double>(chunk_largest) - static_cast<double>(largest)) *
                  static_cast<double>(factor));
}

}  // namespace

void RowScanner::reserve(size_t max_scans, int64_t cols) {
  HEADRACE_CHECK_GT(cols, 0);
  const auto num_workers = static_cast<size_t>(context_.pool.num_threads());
  const auto grow = [](auto& memory, size_t size) {
    if (memory.size() < size) memory.resize(size);
  };
  num_chunks_ = static_cast<size_t>(ceil_div(cols, kSampleChunk));
  grow(block_maxima_, max_scans * static_cast<size_t>(blocks_of(cols)));
  grow(lane_maxima_, max_scans * static_cast<size_t>(groups_of(cols)));
  grow(chunks_, max_scans * num_chunks_);
  grow(collected_, num_workers * kCollected);
  grow(groups_, num_workers * static_cast<size_t>(groups_of(cols)));
  if (max_scans > max_scans_) {
    chunks_left_ = std::make_unique<std::atomic<size_t>[]>(max_scans);
    max_scans_ = max_scans;
  }
  cols_ = cols;
}

void RowScanner::run(std::span<RowScan> scans, int64_t cols) {
  if (scans.empty()) return;
  if (cols != cols_ || scans.size() > max_scans_) reserve(std::max(scans.size(), max_scans_), cols);
  for (size_t i = 0; i < scans.size(); ++i) {
    chunks_left_[i].store(num_chunks_, std::memory_order_relaxed);
  }
  const auto num_tasks = static_cast<int64_t>(scans.size() * num_chunks_);
  context_.pool.parallel_for(num_tasks, [&](int64_t task, int worker) {
    const size_t i = static_cast<size_t>(task) / num_chunks_;
    const Place memory = place(i);
    scan_chunk(scans[i], memory, static_cast<size_t>(task) % num_chunks_);
    // The last one sees what the others wrote.
    if (chunks_left_[i].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      merge(scans[i], memory, worker);
    }
  });
}

RowScanner::Place RowScanner::place(size_t scan) {
  return {.block_maxima = block_maxima_.data() + scan * static_cast<size_t>(blocks_of(cols_)),
          .lane_maxima = lane_maxima_.data() + scan * static_cast<size_t>(groups_of(cols_)),
          .chunks = std::span(chunks_).subspan(scan * num_chunks_, num_chunks_)};
}

void RowScanner::scan_chunk(const RowScan& scan, const Place& place, size_t chunk) const {
  const SamplingKernels& kernels = *context_.kernels.sampling;
  const int64_t begin = static_cast<int64_t>(chunk) * kSampleChunk;
  const int64_t size = std::min(kSampleChunk, cols_ - begin);
  const float* x = scan.row + begin;
  Chunk out;
  out.largest = kernels.chunk_maxima(x, size, place.block_maxima + begin / kSampleBlock,
                                     place.lane_maxima + begin / kSampleStripe * kPanelRows);
  if (std::isfinite(out.largest)) {
    if (scan.wants_exp_sum) out.exp_sum = kernels.exp_sum(x, size, out.largest, 1.0F);
    if (scan.factor == 1.0F && scan.wants_exp_sum) {
      out.weight = out.exp_sum;
    } else if (scan.factor > 0) {
      out.weight = kernels.exp_sum(x, size, out.largest, scan.factor);
    }
  }
  place.chunks[chunk] = out;
}

void RowScanner::merge(RowScan& scan, const Place& place, int worker) {
  scan.largest = -kInf;
  for (const Chunk& chunk : place.chunks) {
    if (std::isnan(chunk.largest)) {
      scan.largest = chunk.largest;
      return;
    }
    scan.largest = std::max(scan.largest, chunk.largest);
  }
  scan.best = first_of(scan, place);
  if (!std::isfinite(scan.largest)) return;
  if (scan.num_top > 0) find_top(scan, place, worker);
  scan.exp_sum = 0;
  scan.total_weight = 0;
  for (const Chunk& chunk : place.chunks) {
    if (scan.wants_exp_sum) scan.exp_sum += chunk.exp_sum * share(chunk.largest, scan.largest, 1);
    if (scan.factor > 0) {
      scan.total_weight += chunk.weight * share(chunk.largest, scan.largest, scan.factor);
    }
  }
  if (scan.draw >= 0) scan.drawn = draw(scan, place);
}

int32_t RowScanner::first_of(const RowScan& scan, const Place& place) const {
  int64_t block = 0;
  while (place.block_maxima[block] != scan.largest) ++block;
  const int64_t begin = block * kSampleBlock;
  const int64_t size = std::min(kSampleBlock, cols_ - begin);
  return static_cast<int32_t>(begin + context_.kernels.argmax(scan.row + begin, size));
}

void RowScanner::find_top(RowScan& scan, const Place& place, int worker) {
  TokenLogit* const list = collected_.data() + worker * kCollected;
  float above = bound_of_top(scan, place, groups_.data() + worker * groups_of(cols_));
  const int64_t wanted = scan.num_top;
  int64_t count = 0;
  for (int64_t next = 0;;) {
    next = context_.kernels.sampling->collect_above(scan.row, next, cols_, place.block_maxima,
                                                    above, list, kCollected, &count);
    if (next == cols_) break;
    // Full. What is still to come has larger ids, so it must be above the best so far.
    std::nth_element(list, list + wanted - 1, list + count, more_likely);
    count = wanted;
    above = list[count - 1].logit;
  }
  if (count > wanted) {
    std::nth_element(list, list + wanted - 1, list + count, more_likely);
    count = wanted;
  }
  std::sort(list, list + count, more_likely);
  std::copy_n(list, count, scan.top);
  scan.num_found = static_cast<int32_t>(count);
}

/// A value that at least num_top logits are above, few more as a rule; -Inf where that cannot be
/// told. Each group of logits has one that is its largest, so num_top logits reach the num_top-th
/// largest of these.
float RowScanner::bound_of_top(const RowScan& scan, const Place& place, float* scratch) const {
  int64_t count = groups_of(cols_);
  const float* groups = place.lane_maxima;
  // Four stripes become one while that leaves groups enough: fewer to choose from.
  while (count / 4 >= kGroupsPerToken * scan.num_top) {
    const int64_t quarter = ceil_div(count / kPanelRows, int64_t{4}) * kPanelRows;
    for (int64_t i = 0; i < quarter; ++i) {
      float largest = groups[i];
      for (int64_t j = i + quarter; j < count; j += quarter) largest = std::max(largest, groups[j]);
      scratch[i] = largest;
    }
    groups = scratch;
    count = quarter;
  }
  if (count < scan.num_top) return -kInf;
  if (groups != scratch) std::copy_n(groups, count, scratch);
  float* const nth = scratch + scan.num_top - 1;
  std::nth_element(scratch, nth, scratch + count, std::greater<>());
  return std::nextafter(*nth, -kInf);
}

int32_t RowScanner::draw(const RowScan& scan, const Place& place) const {
  const double point = scan.draw * scan.total_weight;
  double reached = 0;
  double within = 0;  // of the found chunk, relative to its own largest
  size_t found = place.chunks.size();
  for (size_t c = 0; c < place.chunks.size(); ++c) {
    const Chunk& chunk = place.chunks[c];
    const double one = share(chunk.largest, scan.largest, scan.factor);
    const double weight = chunk.weight * one;
    if (!(weight > 0)) continue;
    found = c;
    within = (point - reached) / one;
    reached += weight;
    if (reached > point) break;
  }
  HEADRACE_CHECK_LT(found, place.chunks.size());
  const Chunk& chunk = place.chunks[found];
  const int64_t begin = static_cast<int64_t>(found) * kSampleChunk;
  const int64_t size = std::min(kSampleChunk, cols_ - begin);
  const int64_t index = context_.kernels.sampling->exp_find(scan.row + begin, size, chunk.largest,
                                                            scan.factor, within);
  return static_cast<int32_t>(begin + index);
}

}  // namespace headrace
