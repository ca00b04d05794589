#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>

namespace headrace {
namespace {

TEST(Buffer, IsAlignedZeroedAndViewedByRows) {
  const Buffer buffer(DType::f32, 3, 5);
  const Tensor all = buffer.view();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(all.data) % 64, 0u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(all.f32()[i], 0.0F);
  all.f32(1)[2] = 7;
  const Tensor tail = all.slice_rows(1, 2);
  EXPECT_EQ(tail.rows, 2);
  EXPECT_EQ(tail.f32()[2], 7.0F);
  EXPECT_THROW(all.slice_rows(2, 2), InternalError);
  EXPECT_THROW(buffer.view(4), InternalError);
}

TEST(Buffer, AnImpossibleSizeThrowsBadAlloc) {
  EXPECT_THROW(Buffer(DType::f32, INT64_MAX, INT64_MAX), std::bad_alloc);
}

}  // namespace
}  // namespace headrace
