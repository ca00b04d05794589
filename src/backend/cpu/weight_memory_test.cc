#include "backend/cpu/weight_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

namespace headrace {
namespace {

TEST(WeightMemory, PiecesAreAlignedAndApart) {
  WeightMemory memory;
  std::vector<std::pair<std::shared_ptr<std::byte>, size_t>> pieces;
  // Small ones that share a chunk, more than one chunk of them, and one of its own chunk.
  for (const size_t size : {size_t{1}, size_t{100}, size_t{64}, size_t{30} << 20, size_t{30} << 20,
                            size_t{30} << 20, size_t{100} << 20, size_t{7}}) {
    pieces.emplace_back(memory.allocate(size), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces.back().first.get()) % 64, 0U);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [data, size] = pieces[i];
    data.get()[0] = std::byte(i + 1);
    data.get()[size - 1] = std::byte(i + 1);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [data, size] = pieces[i];
    EXPECT_EQ(data.get()[0], std::byte(i + 1));
    EXPECT_EQ(data.get()[size - 1], std::byte(i + 1));
  }
}

TEST(WeightMemory, APieceOutlivesWhatGaveIt) {
  std::shared_ptr<std::byte> piece;
  {
    WeightMemory memory;
    piece = memory.allocate(1000);
  }
  std::memset(piece.get(), 3, 1000);
  EXPECT_EQ(piece.get()[999], std::byte{3});
}

TEST(WeightMemory, MoreThanTheMachineHasIsAnError) {
  WeightMemory memory;
  EXPECT_THROW(memory.allocate(std::numeric_limits<size_t>::max()), std::bad_alloc);
  EXPECT_THROW(memory.allocate(std::numeric_limits<size_t>::max() / 4), std::bad_alloc);
}

}  // namespace
}  // namespace headrace
