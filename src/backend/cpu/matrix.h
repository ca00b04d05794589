// A weight matrix in the CPU backend's memory, and how it is packed. Owns the packed bytes, or
// knows where the file's bytes are. Must not know activations.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/coarse_bounds.h"
#include "backend/cpu/kernels/kernel_table.h"
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

struct Packing {
  MatrixStorage storage = MatrixStorage::packed;
  PanelOrder order = PanelOrder::columns;  ///< of packed storage
};

/// What these kernels multiply.
Packing packing_for(const KernelTable& kernels);

/// What a matrix's panels are multiplied with: rows of activations as they are, or made into
/// integers or tiles first.
enum class InputForm : uint8_t { floats, integers, tiles };

class CpuMatrix final : public Matrix {
 public:
  /// Checks sizes and packs. Where `packed` is asked for, formats that have no such panels become
  /// `source`, and f32 `decoded`. Where the weight's data stays nothing is packed: `packed` is what
  /// panels become when they are used, and `decoded` becomes `source`. Errors: corrupt_data (sizes
  /// that do not fit each other); those of the weight's make_row. Throws std::bad_alloc.
  static Result<std::unique_ptr<CpuMatrix>> pack(const WeightView& weight, ThreadPool& pool,
                                                 const Packing& packing, WeightMemory& memory);

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

  /// What panels hold; nothing: f32.
  std::optional<PanelFormat> panel_format() const;
  InputForm input_form() const;
  /// Whether its codes are signed bytes.
  bool has_signed_codes() const {
    return layout_.format == PanelFormat::q8_0 || layout_.format == PanelFormat::q8_planes;
  }

  /// Whether panels are made from the file's rows when they are used; else they lie in memory.
  bool makes_panels() const { return source_ != nullptr; }
  /// Panels that are made at a time: kernels take them two by two.
  static constexpr int64_t kMadePanels = 2;
  /// Bytes of scratch that this takes.
  size_t scratch_bytes() const;

  /// `count` panels from `first` on, in memory, or made in `scratch` (of scratch_bytes(), 64-byte
  /// aligned; `count` is at most kMadePanels then). Floats are [cols][16]; rows past the last are
  /// zeros.
  struct Panels {
    const std::byte* data = nullptr;
    int64_t panel_bytes = 0;              ///< from one panel to the next
    const uint8_t* low_panels = nullptr;  ///< of q8_planes
  };
  Panels panels(int64_t first, int64_t count, std::byte* scratch) const;

  /// What the upper bits of q8_planes leave out; null for other formats.
  const CoarseBounds* coarse_bounds() const { return bounds_.get(); }

 private:
  /// The file's bytes of output row i.
  using RowSource = FunctionRef<const std::byte*(int64_t)>;

  CpuMatrix() = default;
  void leave_in_place(const WeightView& weight, PanelOrder order);
  void allocate(WeightMemory& memory, uint64_t panel_bytes, uint64_t num_panels);
  void allocate_low(WeightMemory& memory);
  Result<void> fill(const WeightView& weight, ThreadPool& pool);
  void fill_panel(int64_t panel, RowSource source, float* row_scratch);
  void decode_panel(int64_t panel, RowSource source, float* row_scratch, float* out) const;
  void pack_panel(int64_t panel, RowSource source, uint8_t* out) const;
  size_t made_panel_bytes() const;
  const std::byte* source_row(int64_t row) const;
  const std::byte* panel_data(int64_t panel) const;
  uint8_t* low_panel(int64_t panel) const;

  int64_t rows_ = 0;
  int64_t cols_ = 0;
  Format format_ = Format::f32;
  MatrixStorage storage_ = MatrixStorage::decoded;
  PanelLayout layout_ = {};  ///< of packed storage
  size_t row_bytes_ = 0;     ///< in the file
  size_t panel_bytes_ = 0;   ///< of 16 rows in data_
  size_t num_bytes_ = 0;
  std::shared_ptr<std::byte> data_;    ///< null where the file's bytes stay
  const std::byte* source_ = nullptr;  ///< rows as in the file, where panels are made from them
  std::vector<int32_t> source_order_;  ///< which of them is row i; empty: i
  // Of q8_planes.
  size_t low_bytes_ = 0;
  std::shared_ptr<std::byte> low_data_;
  std::unique_ptr<CoarseBounds> bounds_;
};

}  // namespace headrace
