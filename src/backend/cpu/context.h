// What the CPU backend's operations share: kernels, threads and scratch memory. Not thread-safe:
// one operation at a time, over all contexts of a pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/attention_plan.h"
#include "backend/cpu/kernels/kernel_table.h"
#include "base/checked.h"
#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace headrace {

/// The first aligned address at or after `data`.
template <class T>
T* align_up(T* data, size_t alignment) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return reinterpret_cast<T*>((address + alignment - 1) / alignment * alignment);
}

/// Floats up to the next cache line: memory for kernels is cut at these.
constexpr int64_t in_lines(int64_t floats) {
  return (floats + 15) / 16 * 16;
}

struct CpuContext {
  CpuContext(const KernelTable& table, int num_threads, bool pin = false)
      : CpuContext(table, std::make_shared<ThreadPool>(num_threads, pin)) {}
  /// With threads that other contexts use too.
  CpuContext(const KernelTable& table, std::shared_ptr<ThreadPool> threads)
      : kernels(table), pool(*threads), pool_(std::move(threads)) {}

  /// At least `size` floats of scratch, 64-byte aligned, kept from one operation to the next.
  float* scratch(size_t size) {
    constexpr size_t kLine = 16;
    if (scratch_.size() < size + kLine) scratch_.resize(size + kLine);
    const size_t past = reinterpret_cast<uintptr_t>(scratch_.data()) / sizeof(float) % kLine;
    return scratch_.data() + (kLine - past) % kLine;
  }

  /// Floats of scratch that are held.
  size_t scratch_size() const { return scratch_.size(); }

  /// At least `bytes` of 64-byte aligned memory for each thread, kept from one operation to the
  /// next: for panels of weights that are made when they are used. Reserved when such weights are
  /// opened.
  void reserve_panels(size_t bytes) {
    if (bytes <= panel_bytes_) return;
    constexpr size_t kVector = 64;
    panel_bytes_ = (bytes + kVector - 1) / kVector * kVector;
    panels_ =
        Buffer(DType::f32, pool.num_threads(), static_cast<int64_t>(panel_bytes_ / sizeof(float)));
  }
  std::byte* panels_of(int worker) const {
    return reinterpret_cast<std::byte*>(panels_.view().f32()) +
           static_cast<size_t>(worker) * panel_bytes_;
  }

  /// Memory for num_rows quantised rows, kept from one operation to the next.
  QuantizedRows quantized_rows(int64_t num_rows, int64_t cols) {
    const auto elements = static_cast<size_t>(num_rows * cols);
    const size_t blocks = elements / static_cast<size_t>(kBlockCols);
    // Two of bytes; `whole` is of 16 bits.
    const size_t planes = kernels.needs_whole ? 4 : 2;
    if (planes_.size() < planes * elements) planes_.resize(planes * elements);
    const size_t flags = kernels.has_wide_steps ? kWideSteps * blocks : blocks;
    if (has_low_.size() < flags) has_low_.resize(flags);
    if (block_floats_.size() < 2 * blocks) block_floats_.resize(2 * blocks);
    if (block_sums_.size() < 3 * blocks) block_sums_.resize(3 * blocks);
    QuantizedRows rows;
    rows.high = planes_.data();
    rows.low = planes_.data() + elements;
    if (kernels.needs_whole) {
      rows.whole = reinterpret_cast<int16_t*>(planes_.data() + 2 * elements);
    }
    rows.has_low = has_low_.data();
    // Rows have the one or the other.
    rows.wide = rows.low;
    rows.wide_steps = rows.has_low;
    rows.scale = block_floats_.data();
    rows.scaled_sum = block_floats_.data() + blocks;
    rows.negated_sums = block_sums_.data();
    rows.cols = cols;
    rows.num_rows = num_rows;
    return rows;
  }

  /// The same for rows of tiles.
  TileRows tile_rows(int64_t num_rows, int64_t cols) {
    // One row has no group; see TileRows.
    const int64_t rows = num_rows == 1 ? 1 : ceil_div(num_rows, kTileGroupRows) * kTileGroupRows;
    const auto elements = static_cast<size_t>(rows * cols);
    constexpr size_t kAlignment = 64;
    if (tiles_.size() < elements + kAlignment) tiles_.resize(elements + kAlignment);
    return {align_up(tiles_.data(), kAlignment), cols, num_rows};
  }

  /// The same for rows of floats.
  Tensor float_rows(int64_t num_rows, int64_t cols) {
    const auto elements = static_cast<size_t>(num_rows * cols);
    if (float_rows_.size() < elements) float_rows_.resize(elements);
    return {float_rows_.data(), DType::f32, num_rows, cols, cols};
  }

  /// f(row, thread) for each of num_rows, in parallel where a row of `work` elements makes it
  /// worthwhile.
  void for_rows_on_threads(int64_t num_rows, int64_t work, FunctionRef<void(int64_t, int)> f) {
    // A task below about 10 microseconds is not worth waking a thread for.
    constexpr int64_t kWorkPerTask = 8192;
    const int64_t rows_per_task = std::max<int64_t>(1, kWorkPerTask / std::max<int64_t>(work, 1));
    pool.parallel_for(ceil_div(num_rows, rows_per_task), [&](int64_t task, int thread) {
      const int64_t end = std::min(num_rows, (task + 1) * rows_per_task);
      for (int64_t row = task * rows_per_task; row < end; ++row) f(row, thread);
    });
  }
  void for_rows(int64_t num_rows, int64_t work, FunctionRef<void(int64_t)> f) {
    for_rows_on_threads(num_rows, work, [&](int64_t row, int) { f(row); });
  }

  const KernelTable& kernels;
  ThreadPool& pool;
  // Lists that operations make anew, kept for their memory.
  std::vector<QueryTile> query_tiles;
  std::vector<PanelRows> panel_rows;

 private:
  const std::shared_ptr<ThreadPool> pool_;
  std::vector<float> scratch_;
  std::vector<float> float_rows_;
  Buffer panels_;
  size_t panel_bytes_ = 0;  ///< of a thread
  std::vector<uint16_t> tiles_;
  std::vector<int8_t> planes_;
  std::vector<uint8_t> has_low_;
  std::vector<float> block_floats_;
  std::vector<int32_t> block_sums_;
};

}  // namespace headrace
