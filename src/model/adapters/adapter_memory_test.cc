#include "model/adapters/adapter_memory.h"

#include <gtest/gtest.h>

#include <limits>

#include "backend/cpu/cpu_backend.h"

namespace headrace {
namespace {

uint64_t bytes_of(const Tensor& tensor) {
  return static_cast<uint64_t>(tensor.rows * tensor.cols) * dtype_bytes(tensor.dtype);
}

struct ExpectedProduct {
  int64_t rank, outputs;
  bool makes_logits;
};

/// Bytes that are allocated for steps of 8 rows, 3 of them with logits; they must be as many as was
/// foretold.
uint64_t taken_bytes(const std::vector<ExpectedProduct>& products) {
  const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
  AdapterMemory memory;
  AdapterSizes sizes;
  for (const auto& [rank, outputs, makes_logits] : products) {
    memory.expect(rank, outputs, makes_logits);
    sizes.expect(rank, outputs, makes_logits);
  }
  memory.reserve(*backend, 8, 3);
  uint64_t sum = 0;
  for (const AdapterStep* step : {memory.of_rows(), memory.of_logit_rows()}) {
    sum += bytes_of(step->low) + bytes_of(step->added);
  }
  EXPECT_EQ(buffer_bytes(sizes, 8, 3), sum);
  return sum;
}

TEST(AdapterMemory, TakesWhatWasForetold) {
  constexpr int64_t kFloat = sizeof(float);
  EXPECT_EQ(taken_bytes({}), 0U);
  EXPECT_EQ(taken_bytes({{4, 100, false}, {6, 50, false}}), 8U * (3 * 6 + 100) * kFloat);
  EXPECT_EQ(taken_bytes({{4, 100, false}, {6, 1000, true}}),
            (8U * (3 * 6 + 100) + 3U * (6 + 1000)) * kFloat);
  EXPECT_EQ(taken_bytes({{6, 1000, true}}), (8U * 3 * 6 + 3U * (6 + 1000)) * kFloat);
}

TEST(AdapterMemory, SizesThatFitNoMemoryAreTheLargestNumber) {
  AdapterSizes sizes;
  sizes.expect(int64_t{1} << 60, int64_t{1} << 62, true);
  EXPECT_EQ(buffer_bytes(sizes, 1 << 20, 1 << 20), std::numeric_limits<uint64_t>::max());
}

}  // namespace
}  // namespace headrace
