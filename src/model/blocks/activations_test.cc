#include "model/blocks/activations.h"

#include <gtest/gtest.h>

#include <limits>

#include "backend/cpu/cpu_backend.h"

namespace headrace {
namespace {

TEST(Activations, BufferBytesAreWhatReserveAllocates) {
  const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
  const ActivationSizes sizes{.embedding = 32,
                              .queries = 48,
                              .keys = 16,
                              .feed_forward = 80,
                              .vocab = 50,
                              .experts = 7,
                              .shared_scores = 1,
                              .expert_hidden = 90,
                              .expert_parts = 96};
  EXPECT_EQ(widest_input(sizes), 170);
  Activations a(*backend, sizes);
  a.reserve(5, 2);
  uint64_t bytes = 0;
  for (const Buffer* buffer :
       {&a.x, &a.delta, &a.q, &a.k, &a.v, &a.attended, &a.gate, &a.up, &a.expert_scores,
        &a.shared_score, &a.expert_gate, &a.expert_up, &a.expert_parts, &a.last, &a.logits}) {
    const Tensor tensor = buffer->view();
    EXPECT_GT(tensor.rows, 0);
    bytes += static_cast<uint64_t>(tensor.rows * tensor.cols) * sizeof(float);
  }
  EXPECT_EQ(buffer_bytes(sizes, 5, 2), bytes);

  // A smaller step needs nothing new, more logits only theirs.
  a.reserve(1, 3);
  EXPECT_EQ(a.x.view().rows, 5);
  EXPECT_EQ(a.logits.view().rows, 3);
  EXPECT_EQ(a.logits.view().cols, 50);
}

TEST(Activations, BytesOfHostileSizesSaturate) {
  EXPECT_EQ(buffer_bytes({.embedding = int64_t{1} << 62}, 256, 1),
            std::numeric_limits<uint64_t>::max());
}

}  // namespace
}  // namespace headrace
