// Packed matrices: their size, what they give back, and when the file's pages may go.
#include "backend/cpu/matrix.h"

#include <gtest/gtest.h>

#include "backend/cpu/kv_storage.h"
#include "backend/cpu/test_tensors.h"

namespace headrace {
namespace {

using namespace backend_test;

TEST(CpuMatrix, PackedWeightsAreAboutTheFilesSize) {
  ThreadPool pool(2);
  WeightMemory memory;
  for (const FormatTraits& format : all_formats()) {
    const auto data = made_up_blocks(format.format, 160, 2048, 1);
    const auto matrix =
        CpuMatrix::pack({format.format, 160, 2048, data, {}, "w"}, pool, Packing{}, memory);
    ASSERT_TRUE(matrix.ok());
    EXPECT_LE(static_cast<double>((*matrix)->bytes()), 1.03 * static_cast<double>(data.size()))
        << format.name;
  }
}

TEST(CpuMatrix, EveryStorageGivesTheReferenceDecode) {
  ThreadPool pool(2);
  WeightMemory memory;
  for (const FormatTraits& format : all_formats()) {
    for (const Codes codes : {Codes::random, Codes::all_ones, Codes::only_top_bits}) {
      const auto data = made_up_blocks(format.format, 35, 768, 2, codes);
      const auto expected = decode_all(format.format, data);
      for (const Packing& packing : {Packing{MatrixStorage::decoded, PanelOrder::columns},
                                     {MatrixStorage::source, PanelOrder::columns},
                                     {MatrixStorage::packed, PanelOrder::columns},
                                     {MatrixStorage::packed, PanelOrder::tiles}}) {
        const auto matrix =
            CpuMatrix::pack({format.format, 35, 768, data, {}, "w"}, pool, packing, memory);
        ASSERT_TRUE(matrix.ok());
        std::vector<float> found(expected.size());
        for (int64_t row = 0; row < 35; ++row) (*matrix)->decode_row(row, &found[768 * row]);
        EXPECT_TRUE(same_bits(found, expected)) << format.name;
      }
    }
  }
}

TEST(CpuMatrix, WhatStaysInPlaceTakesScratchOnly) {
  ThreadPool pool(2);
  WeightMemory memory;
  for (const FormatTraits& format : all_formats()) {
    const auto data = made_up_blocks(format.format, 100, 2048, 4);
    WeightView view{format.format, 100, 2048, data, {}, "w"};
    view.data_stays = true;
    view.release = [](std::span<const std::byte>) { ADD_FAILURE() << "nothing was read"; };
    const auto matrix = CpuMatrix::pack(view, pool, Packing{}, memory);
    ASSERT_TRUE(matrix.ok());
    EXPECT_TRUE((*matrix)->makes_panels());
    EXPECT_EQ((*matrix)->bytes(), data.size());
    // Two panels and a row as floats: what the plan of memory counts on.
    EXPECT_LE((*matrix)->scratch_bytes(), 33U * 2048 * sizeof(float)) << format.name;
    EXPECT_THROW((*matrix)->panels(0, 3, nullptr), InternalError);
  }
}

TEST(CpuMatrix, ReleasesEveryByteOnceWhilePacking) {
  ThreadPool pool(2);
  WeightMemory memory;
  const int64_t rows = 40000;
  const auto data = made_up_blocks(Format::q8_0, rows, 512, 3);
  for (const bool permuted : {false, true}) {
    std::vector<int32_t> order;
    if (permuted) {
      for (int32_t i = 0; i < rows; ++i) order.push_back(static_cast<int32_t>(rows) - 1 - i);
    }
    size_t released = 0;
    int calls = 0;
    WeightView view{Format::q8_0, rows, 512, data, order, "w"};
    view.release = [&](std::span<const std::byte> part) {
      EXPECT_EQ(part.data(), data.data() + released);
      released += part.size();
      ++calls;
    };
    ASSERT_TRUE(CpuMatrix::pack(view, pool, Packing{}, memory).ok());
    EXPECT_EQ(released, data.size());
    EXPECT_EQ(calls > 1, !permuted);
  }
}

TEST(CpuKvStorage, PagesAreZeroDisjointAndAligned) {
  const KvPageLayout layout{KvType::f16, 3, 20, 32};
  const auto storage = allocate_cpu_kv(layout, 2, 3);
  std::vector<std::byte*> pages;
  for (int layer = 0; layer < 2; ++layer) {
    for (int32_t block = 0; block < 3; ++block) {
      std::byte* page = storage->layer(layer).page(block);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(page) % 64, 0u);
      for (size_t i = 0; i < layout.page_bytes(); ++i) {
        ASSERT_EQ(page[i], std::byte{0});
        page[i] = std::byte{1};
      }
      pages.push_back(page);
    }
  }
  EXPECT_EQ(pages.size(), 6u);
  EXPECT_GE(storage->bytes(), 6 * layout.page_bytes());
  EXPECT_THROW(allocate_cpu_kv(layout, 2, INT64_MAX), std::bad_alloc);
  EXPECT_THROW(storage->layer(2), InternalError);
}

}  // namespace
}  // namespace headrace
