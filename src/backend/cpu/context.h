// What the CPU backend's operations share: kernels, threads and scratch memory. Not thread-safe:
// one operation at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "backend/cpu/kernels/kernel_table.h"
#include "base/checked.h"
#include "base/function_ref.h"
#include "base/thread_pool.h"

namespace headrace {

/// The first aligned address at or after `data`.
template <class T>
T* align_up(T* data, size_t alignment) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return reinterpret_cast<T*>((address + alignment - 1) / alignment * alignment);
}

struct CpuContext {
  CpuContext(const KernelTable& table, int num_threads) : kernels(table), pool(num_threads) {}

  /// At least `size` floats of scratch, kept from one operation to the next; 64-byte aligned
  /// memory is not promised.
  float* scratch(size_t size) {
    if (scratch_.size() < size) scratch_.resize(size);
    return scratch_.data();
  }

  /// Floats of scratch that are held.
  size_t scratch_size() const { return scratch_.size(); }

  /// The form that the input of a packed matrix takes.
  ActivationForm form_of(ActivationPrecision precision) const {
    return kernels.form[static_cast<size_t>(precision)];
  }

  /// Memory for num_rows quantised rows of a form, kept from one operation to the next.
  QuantizedRows quantized_rows(ActivationForm form, int64_t num_rows, int64_t cols) {
    RowsMemory& memory = rows_memory_[static_cast<size_t>(form)];
    if (form == ActivationForm::bf16) {
      // One row has no group; see QuantizedRows::tiles.
      const int64_t rows = num_rows == 1 ? 1 : ceil_div(num_rows, kTileGroupRows) * kTileGroupRows;
      const auto elements = static_cast<size_t>(rows * cols);
      constexpr size_t kAlignment = 64;
      if (memory.tiles.size() < elements + kAlignment) memory.tiles.resize(elements + kAlignment);
      QuantizedRows tiles;
      tiles.tiles = align_up(memory.tiles.data(), kAlignment);
      tiles.cols = cols;
      tiles.num_rows = num_rows;
      return tiles;
    }
    const auto elements = static_cast<size_t>(num_rows * cols);
    const size_t blocks = elements / static_cast<size_t>(kBlockCols);
    const size_t planes = form == ActivationForm::int15 ? 2 : 1;
    if (memory.planes.size() < planes * elements) memory.planes.resize(planes * elements);
    if (memory.block_floats.size() < 2 * blocks) memory.block_floats.resize(2 * blocks);
    if (memory.block_sums.size() < 3 * blocks) memory.block_sums.resize(3 * blocks);
    QuantizedRows rows;
    rows.high = memory.planes.data();
    if (planes == 2) rows.low = memory.planes.data() + elements;
    rows.scale = memory.block_floats.data();
    rows.scaled_sum = memory.block_floats.data() + blocks;
    rows.negated_sums = memory.block_sums.data();
    rows.cols = cols;
    rows.num_rows = num_rows;
    return rows;
  }

  /// f(row) for each of num_rows, in parallel where a row of `work` elements makes it worthwhile.
  void for_rows(int64_t num_rows, int64_t work, FunctionRef<void(int64_t)> f) {
    // A task below about 10 microseconds is not worth waking a thread for.
    constexpr int64_t kWorkPerTask = 16384;
    const int64_t rows_per_task = std::max<int64_t>(1, kWorkPerTask / std::max<int64_t>(work, 1));
    pool.parallel_for(ceil_div(num_rows, rows_per_task), [&](int64_t task, int) {
      const int64_t end = std::min(num_rows, (task + 1) * rows_per_task);
      for (int64_t row = task * rows_per_task; row < end; ++row) f(row);
    });
  }

  const KernelTable& kernels;
  ThreadPool pool;

 private:
  struct RowsMemory {
    std::vector<int8_t> planes;
    std::vector<float> block_floats;
    std::vector<int32_t> block_sums;
    std::vector<uint16_t> tiles;
  };

  std::vector<float> scratch_;
  std::array<RowsMemory, kNumActivationForms> rows_memory_;
};

}  // namespace headrace
