// A weight matrix in the CPU backend's memory, and how it is packed. Owns the packed bytes. Must
// not know activations.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/coarse_bounds.h"
#include "backend/cpu/panel_pack.h"
#include "backend/cpu/weight_memory.h"
#include "base/function_ref.h"
#include "base/thread_pool.h"

namespace headrace {

/// How the weights lie in memory.
enum class MatrixStorage : uint8_t {
  decoded,  ///< f32 panels [cols][16]: the reference path, and f32 weights; 4 bytes a weight
  source,   ///< rows as in the file, decoded panel by panel when used
  packed,   ///< panels of about the file's size: panel_pack.h
};

class CpuMatrix final : public Matrix {
 public:
  /// Checks sizes and packs. Where `packed` is asked for, formats that have no such panels become
  /// `source`, and f32 `decoded`. Errors: corrupt_data (sizes that do not fit each other).
  /// Throws std::bad_alloc.
  static Result<std::unique_ptr<CpuMatrix>> pack(const WeightView& weight, ThreadPool& pool,
                                                 MatrixStorage storage, WeightMemory& memory,
                                                 PanelOrder order = PanelOrder::columns);

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  Format format() const override { return format_; }
  size_t bytes() const override {
    return num_bytes_ + low_bytes_ + (bounds_ ? bounds_->bytes() : 0);
  }
  size_t linear_bytes() const override { return num_bytes_ + low_bytes_; }
  size_t top_bytes() const override {
    return bounds_ ? num_bytes_ + bounds_->row_bytes() : linear_bytes();
  }
  MatrixStorage storage() const { return storage_; }

  /// Panels of 16 rows; the last may have fewer that exist.
  int64_t num_panels() const;

  /// One row as the format's reference decode gives it. out: [cols].
  void decode_row(int64_t row, float* out) const;

  /// A panel as floats [cols][16], rows past the last as zeros: its own memory, or decoded into
  /// `scratch` ([cols * 17]).
  const float* float_panel(int64_t panel, float* scratch) const;

  /// Of packed storage: a panel and what lies after it.
  struct PackedView {
    PanelFormat format = PanelFormat::q4_0;
    PanelOrder order = PanelOrder::columns;
    const uint8_t* panels = nullptr;
    int64_t panel_bytes = 0;              ///< from one panel to the next
    const uint8_t* low_panels = nullptr;  ///< of q8_planes
  };
  PackedView packed_panels(int64_t first_panel) const;

  /// What the upper bits of q8_planes leave out; null for other formats.
  const CoarseBounds* coarse_bounds() const { return bounds_.get(); }

 private:
  /// The file's bytes of output row i.
  using RowSource = FunctionRef<const std::byte*(int64_t)>;

  CpuMatrix() = default;
  void allocate(WeightMemory& memory, uint64_t panel_bytes, uint64_t num_panels);
  void allocate_low(WeightMemory& memory);
  void fill_panel(int64_t panel, RowSource source, float* row_scratch);
  void decode_panel(int64_t panel, RowSource source, float* row_scratch, float* out) const;
  const std::byte* panel_data(int64_t panel) const;
  uint8_t* low_panel(int64_t panel) const;

  int64_t rows_ = 0;
  int64_t cols_ = 0;
  Format format_ = Format::f32;
  MatrixStorage storage_ = MatrixStorage::decoded;
  PanelLayout layout_ = {};  ///< of packed storage
  size_t row_bytes_ = 0;     ///< in the file
  size_t panel_bytes_ = 0;   ///< of 16 rows here
  size_t num_bytes_ = 0;
  std::shared_ptr<std::byte> data_;
  // Of q8_planes.
  size_t low_bytes_ = 0;
  std::shared_ptr<std::byte> low_data_;
  std::unique_ptr<CoarseBounds> bounds_;
};

}  // namespace headrace
