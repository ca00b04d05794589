// See tensor.h.
#include "tensor/tensor.h"

#include <cstring>
#include <new>

#include "base/checked.h"

namespace headrace {
namespace {

void free_host(void* data) {
  ::operator delete[](data, std::align_val_t(64));
}

}  // namespace

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols) : dtype_(dtype), rows_(rows), cols_(cols) {
  HEADRACE_CHECK(rows >= 0 && cols >= 0);
  const auto elements =
      checked_mul<uint64_t>(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols));
  const auto bytes = elements ? checked_mul<uint64_t>(*elements, dtype_bytes(dtype)) : std::nullopt;
  // A vector load may run past the last element, never past this padding.
  const auto padded = bytes ? checked_add<uint64_t>(*bytes, 128) : std::nullopt;
  if (!padded) throw std::bad_alloc();
  void* data = ::operator new[](static_cast<size_t>(*padded), std::align_val_t(64));
  std::memset(data, 0, static_cast<size_t>(*padded));
  data_ = {data, free_host};
}

Buffer::Buffer(void* data, Free free, DType dtype, int64_t rows, int64_t cols)
    : data_(data, free), dtype_(dtype), rows_(rows), cols_(cols) {}

Tensor Buffer::view(int64_t rows) const {
  HEADRACE_CHECK_LE(rows, rows_);
  return Tensor{data_.get(), dtype_, rows, cols_, cols_};
}

size_t Buffer::bytes() const {
  return static_cast<size_t>(rows_ * cols_) * dtype_bytes(dtype_);
}

}  // namespace headrace
