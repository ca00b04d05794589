// A weight matrix in the CPU backend's memory, and how it is packed. Owns the packed bytes. Must
// not know activations.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace headrace {

/// How the weights lie in memory.
enum class MatrixStorage : uint8_t {
  decoded,  ///< f32 panels [cols][16]: the reference path; 4 bytes a weight
  source,   ///< rows as in the file, decoded panel by panel when used
};

class CpuMatrix final : public Matrix {
 public:
  /// Checks sizes and packs. Errors: corrupt_data (sizes that do not fit each other).
  /// Throws std::bad_alloc.
  static Result<std::unique_ptr<CpuMatrix>> pack(const WeightView& weight, ThreadPool& pool,
                                                 MatrixStorage storage);

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  Format format() const override { return format_; }
  size_t bytes() const override { return bytes_.bytes(); }
  MatrixStorage storage() const { return storage_; }

  /// Panels of 16 rows; the last may have fewer that exist.
  int64_t num_panels() const;

  /// One row as the format's reference decode gives it. out: [cols].
  void decode_row(int64_t row, float* out) const;

  /// A panel as floats [cols][16], rows past the last as zeros: its own memory, or decoded into
  /// `scratch` ([cols * 17]).
  const float* float_panel(int64_t panel, float* scratch) const;

 private:
  CpuMatrix() = default;
  /// `source(row)` is where the file's bytes of output row `row` are; row_scratch: [cols].
  void decode_panel(int64_t panel, FunctionRef<const std::byte*(int64_t)> source,
                    float* row_scratch, float* out) const;
  const std::byte* source_row(int64_t row) const;

  int64_t rows_ = 0;
  int64_t cols_ = 0;
  Format format_ = Format::f32;
  MatrixStorage storage_ = MatrixStorage::decoded;
  size_t row_bytes_ = 0;  ///< in the file
  Buffer bytes_;
};

}  // namespace headrace
