// A view of a matrix of activations and the buffer that owns one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/check.h"
#include "tensor/dtype.h"

namespace headrace {

/// A view of [rows, cols] elements, each row contiguous, rows `row_stride` elements apart. Does not
/// own. `data` is an address of the backend that made it (for a GPU, not readable by the CPU).
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;

  float* f32(int64_t row = 0) const {
    HEADRACE_CHECK(dtype == DType::f32);
    return static_cast<float*>(data) + row * row_stride;
  }

  /// Rows [begin, begin + count) of this view.
  Tensor slice_rows(int64_t begin, int64_t count) const {
    HEADRACE_CHECK(begin >= 0 && count >= 0 && begin + count <= rows);
    Tensor out = *this;
    out.data = static_cast<std::byte*>(data) +
               static_cast<size_t>(begin * row_stride) * dtype_bytes(dtype);
    out.rows = count;
    return out;
  }
};

/// Owns the memory of one activation matrix. Host memory by default; a device backend passes its
/// own address and the function that gives it back.
class Buffer {
 public:
  using Free = void (*)(void* data);

  Buffer() = default;
  /// Host memory, 64-byte aligned, zeroed. Throws std::bad_alloc.
  Buffer(DType dtype, int64_t rows, int64_t cols);
  /// Takes over `data`, which holds [rows, cols] elements.
  Buffer(void* data, Free free, DType dtype, int64_t rows, int64_t cols);

  /// A view of the first `rows` rows.
  Tensor view(int64_t rows) const;
  Tensor view() const { return view(rows_); }
  size_t bytes() const;

 private:
  std::unique_ptr<void, Free> data_{nullptr, [](void*) {}};
  DType dtype_ = DType::f32;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
};

}  // namespace headrace
