// A weight matrix in the CPU backend's memory, and how it is packed. Owns the packed bytes. Must
// not know activations.
#pragma once

#include <memory>
#include <new>

#include "backend/backend.h"
#include "backend/cpu/panel_pack.h"
#include "base/function_ref.h"
#include "base/thread_pool.h"

namespace headrace {

/// How the weights lie in memory.
enum class MatrixStorage : uint8_t {
  decoded,  ///< f32 panels [cols][16]: the reference path; 4 bytes a weight
  source,   ///< rows as in the file, decoded panel by panel when used
  packed,   ///< integer panels, about the file's size: panel_pack.h
};

class CpuMatrix final : public Matrix {
 public:
  /// Checks sizes and packs. Formats that have no panels in `order` become `source` where `packed`
  /// is asked for. Errors: corrupt_data (sizes that do not fit each other). Throws std::bad_alloc.
  static Result<std::unique_ptr<CpuMatrix>> pack(const WeightView& weight, ThreadPool& pool,
                                                 MatrixStorage storage,
                                                 PanelOrder order = PanelOrder::columns);

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  Format format() const override { return format_; }
  size_t bytes() const override { return num_bytes_; }
  MatrixStorage storage() const { return storage_; }
  ActivationPrecision precision() const { return precision_; }  ///< of its input

  /// Panels of 16 rows; the last may have fewer that exist.
  int64_t num_panels() const;

  /// One row as the format's reference decode gives it. out: [cols].
  void decode_row(int64_t row, float* out) const;

  /// A panel as floats [cols][16], rows past the last as zeros: its own memory, or decoded into
  /// `scratch` ([cols * 17]).
  const float* float_panel(int64_t panel, float* scratch) const;

  /// A panel as a tile of bf16 for each 32 columns (tile_layout.h), rounded as kernels do; rows
  /// past the last as zeros. Of `source` storage and columns in a multiple of 32. out: [cols * 16];
  /// row_scratch: [cols].
  void decode_tiles(int64_t panel, float* row_scratch, uint16_t* out) const;

  /// Of packed storage: a panel and what lies after it.
  struct PackedView {
    PanelFormat format = PanelFormat::bf16;
    const uint8_t* panels = nullptr;
    int64_t panel_bytes = 0;   ///< from one panel to the next
    int64_t scales_bytes = 0;  ///< from a panel's start to its codes
  };
  PackedView packed_panels(int64_t first_panel) const;

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t(64)); }
  };
  /// The file's bytes of output row i.
  using RowSource = FunctionRef<const std::byte*(int64_t)>;

  CpuMatrix() = default;
  void allocate(uint64_t panel_bytes, uint64_t num_panels);
  void fill_panel(int64_t panel, RowSource source, float* row_scratch);
  void decode_panel(int64_t panel, RowSource source, float* row_scratch, float* out) const;
  const std::byte* panel_data(int64_t panel) const;

  int64_t rows_ = 0;
  int64_t cols_ = 0;
  Format format_ = Format::f32;
  MatrixStorage storage_ = MatrixStorage::decoded;
  ActivationPrecision precision_ = ActivationPrecision::standard;
  PanelLayout layout_ = {};  ///< of packed storage
  size_t scales_bytes_ = 0;  ///< of packed storage
  size_t row_bytes_ = 0;     ///< in the file
  size_t panel_bytes_ = 0;   ///< of 16 rows here
  size_t num_bytes_ = 0;
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace headrace
