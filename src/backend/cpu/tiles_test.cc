// The AMX path: its packing, and its products bit for bit against the tile arithmetic in plain
// code. All but the packing needs a processor with AMX.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/panel_pack.h"
#include "backend/cpu/test_tensors.h"
#include "backend/cpu/tile_codes.h"

namespace headrace {
namespace {

using namespace backend_test;

bool has_amx() {
  return available_isas().back() == Isa::amx;
}

TEST(TileCodes, EveryRowReadsBackAndRowsDoNotMeet) {
  for (const auto& [kind, bytes, num_codes] : {std::tuple{PanelCodes::u4, size_t{256}, 16},
                                               {PanelCodes::u5, size_t{320}, 32},
                                               {PanelCodes::u6, size_t{384}, 64},
                                               {PanelCodes::s8, size_t{512}, 256}}) {
    Numbers numbers(static_cast<uint64_t>(bytes));
    std::vector<uint8_t> record(bytes);
    uint8_t codes[16][32];
    for (int64_t lane = 0; lane < 16; ++lane) {
      for (auto& code : codes[lane]) code = static_cast<uint8_t>(numbers.below(num_codes));
      write_tile_codes(kind, codes[lane], lane, record.data());
    }
    for (int64_t lane = 0; lane < 16; ++lane) {
      uint8_t found[32];
      read_tile_codes(kind, record.data(), lane, found);
      EXPECT_TRUE(std::equal(found, found + 32, codes[lane])) << "lane " << lane;
    }
  }
}

/// To nearest, ties away from zero: how weights are rounded.
float round_weight(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bf16_to_f32(static_cast<uint16_t>((bits + 0x8000U) >> 16));
}

/// The sum as tiles make it: of each 32 columns a chain over the even and one over the odd ones.
float tile_product(const float* x, const float* w, int64_t cols) {
  float sum = 0.0F;
  for (int64_t block = 0; block < cols; block += 32) {
    float chain[2] = {0.0F, 0.0F};
    for (int64_t k = block; k < block + 32; ++k) {
      chain[k % 2] = std::fma(bf16_to_f32(f32_to_bf16(x[k])), round_weight(w[k]), chain[k % 2]);
    }
    sum = sum + (chain[0] + chain[1]);
  }
  return sum;
}

TEST(TileProducts, AreThoseOfTheTileArithmeticBitForBit) {
  if (!has_amx()) GTEST_SKIP() << "this machine has no amx";
  const auto backend = backend_of(Isa::amx);
  for (const FormatTraits& format : all_formats()) {
    if (!panel_layout(format.format, PanelOrder::tiles, 768)) continue;  // runs in float32
    SCOPED_TRACE(format.name);
    const int64_t cols = 768;
    const int64_t out_rows = 75;
    const auto data = made_up_blocks(format.format, out_rows, cols, 3);
    const auto weights = decode_all(format.format, data);
    const auto matrix = backend->pack({format.format, out_rows, cols, data, {}, "w"});
    ASSERT_TRUE(matrix.ok());
    const Buffer bias = random_rows(1, out_rows, 5);
    // More rows than a kernel takes at a time, with one format.
    const int64_t most_rows = format.format == Format::q4_1 ? 2 * kTileMostRows + 20 : 70;
    for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{16}, int64_t{17}, most_rows}) {
      const Buffer x = random_rows(rows, cols, 7);
      const Buffer out = backend->allocate(DType::f32, rows, out_rows);
      backend->linear(x.view(), {matrix->get(), bias.view(), out.view()});
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t o = 0; o < out_rows; ++o) {
          ASSERT_EQ(
              out.view().f32(r)[o],
              tile_product(x.view().f32(r), weights.data() + o * cols, cols) + bias.view().f32()[o])
              << "row " << r << " of " << rows << ", output " << o;
        }
      }
    }
  }
}

TEST(TileRows, RoundToNearestEvenAndFillGroupsWithZeros) {
  if (!has_amx()) GTEST_SKIP() << "this machine has no amx";
  const KernelTable& kernels = kernel_table(Isa::amx);
  const int64_t cols = 96;
  for (const int64_t num_rows : {1, 2, 16, 21}) {
    const Buffer x = random_rows(num_rows, cols, 11);
    x.view().f32()[3] = std::numeric_limits<float>::quiet_NaN();
    x.view().f32()[4] = -std::numeric_limits<float>::infinity();
    const int64_t num_groups = ceil_div(num_rows, kTileGroupRows);
    std::vector<uint16_t> tiles(static_cast<size_t>(num_groups * kTileGroupRows * cols), 0xabcd);
    const TileRows rows{tiles.data(), cols, num_rows};
    for (int64_t group = 0; group < num_groups; ++group) {
      kernels.tile_rows(x.view().f32(group * kTileGroupRows), cols, group, rows);
    }
    for (int64_t r = 0; r < (num_rows == 1 ? 1 : num_groups * kTileGroupRows); ++r) {
      for (int64_t k = 0; k < cols; ++k) {
        const int64_t tile = (r / 16 * (cols / 32) + k / 32) * kTileElements;
        const int64_t at = num_rows == 1 ? k : tile + k % 32 / 2 * 32 + r % 16 * 2 + k % 2;
        const float value = r < num_rows ? x.view().f32(r)[k] : 0.0F;
        ASSERT_EQ(tiles[static_cast<size_t>(at)], f32_to_bf16(value)) << r << " " << k;
      }
    }
  }
}

}  // namespace
}  // namespace headrace
