// Packed weights times rows of activations in tiles: a run of panels. Up to 32 rows take one panel
// at a time, decoding and multiplying block by block; more take two panels and 32 rows together,
// with weights that are decoded once a call, some columns at a time, so that their tiles stay in
// the first-level cache while the rows pass by.
//
// One output element is one element of one sum tile, to which all columns are added in order, 32 at
// a time (tile_multiply). An element depends on nothing else in its tile, so that a row's results
// are the same bits whatever rows run with it.
//
// Weights are the left operand, activations the right one. So a tile of weights has a row's columns
// side by side, as decoding gives them, and one row alone needs no other order than its own; the
// price is that sums come out transposed.
#pragma once

#include <type_traits>

#include "backend/cpu/kernels/amx/decode.inl"
#include "backend/cpu/kernels/amx/tiles.inl"
#include "backend/cpu/kernels/amx/transpose.inl"

// The loops that matter stand alone: in one large function the compiler runs out of registers.
#define HEADRACE_LOOP __attribute__((noinline))

namespace headrace {
namespace {

constexpr int64_t kSumElements = 16 * 16;
/// Panels, and groups of rows, that are multiplied together: 4 sums, and 4 loads for 4 products.
constexpr int kPanels = 2;
constexpr int kGroups = 2;

/// Where few rows need them, decoded tiles take turns; each is multiplied while the second one
/// after it is decoded, when its stores have left for the first-level cache.
constexpr int64_t kRingBlocks = 4;
constexpr int64_t kBehindBlocks = 2;

/// Blocks of two panels that are decoded, and multiplied with all rows, before the next ones: 40
/// KB.
constexpr int64_t kChunkBlocks = 20;
static_assert(kTileMostRows * kPanels * 16 * sizeof(float) +
                  kChunkBlocks * kPanels * kTileElements * sizeof(uint16_t) <=
              kTileScratchBytes);

/// How far ahead memory is fetched to the first level and to the second: it then gives its best
/// rate. The processor's own prefetching begins anew at each page.
constexpr int64_t kFetchAhead = 1024;
constexpr int64_t kFetchFurther = 6144;

/// Rows of activations.
struct Input {
  const uint16_t* x;  ///< the tile of the first group's first block
  int64_t block;      ///< elements between the tiles of two blocks
  int64_t group;      ///< elements between two groups of 16 rows
  int64_t row_bytes;  ///< between a tile's rows (of column pairs), and between those of sums:
                      ///< 64, or 4 for one row alone
};

/// Where a panel's outputs go.
struct Outputs {
  float* out;         ///< of the first row
  int64_t stride;     ///< between rows
  int64_t lanes;      ///< weight rows that exist; none or less: nothing is written
  const float* bias;  ///< or null
};

HEADRACE_INLINE __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n <= 0 ? 0 : n >= 16 ? 0xffff : (1 << n) - 1);
}

/// Writes a sum tile [16 weights][16 rows], transposed: its first num_rows rows. kWhole: all rows
/// and lanes exist.
template <bool kWhole>
HEADRACE_INLINE void write_rows(const float* sums, const Outputs& o, int64_t num_rows,
                                __m512 bias) {
  const __mmask16 lanes = first_lanes(o.lanes);
  float* out = o.out;
#pragma GCC unroll 4
  for (int first = 0; first < 16; first += 4) {
    const FourColumns rows = transpose_four(sums + first);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m512 y = rows.column[r] + bias;
      if constexpr (kWhole) {
        _mm512_storeu_ps(out, y);
      } else {
        if (first + r < num_rows) _mm512_mask_storeu_ps(out, lanes, y);
      }
      out += o.stride;
    }
  }
}

HEADRACE_LOOP void write_sums(const float* sums, const Outputs& o, int64_t num_rows) {
  const __m512 bias =
      o.bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(first_lanes(o.lanes), o.bias);
  if (num_rows >= kTileGroupRows && o.lanes >= kPanelRows) {
    write_rows<true>(sums, o, num_rows, bias);
  } else {
    write_rows<false>(sums, o, num_rows, bias);
  }
}

/// The sums of all rows, whose groups' tiles are `step` elements apart.
HEADRACE_INLINE void write_groups(const float* sums, Outputs o, int64_t num_rows, int64_t step) {
  for (; num_rows > 0; num_rows -= kTileGroupRows) {
    write_sums(sums, o, num_rows);
    sums += step;
    o.out += kTileGroupRows * o.stride;
  }
}

HEADRACE_INLINE void fetch_ahead(const uint8_t* from, int64_t bytes) {
#pragma GCC unroll 16
  for (int64_t at = 0; at < bytes; at += 64) {
    __builtin_prefetch(from + kFetchAhead + at);
    __builtin_prefetch(from + kFetchFurther + at, 0, 2);
  }
}

/// Of codes and scales, on average.
template <class Decode>
constexpr int64_t bytes_a_block() {
  constexpr auto kind = static_cast<size_t>(Decode::kScales);
  return Decode::kBytes + kRecordScalesBytes[kind] / kRecordBlocks[kind];
}

/// Decodes `count` blocks of one panel from `first` on, in turns of `ring` tiles (a power of 2).
/// between(i, quarter) is called four times while block i is decoded.
template <class Decode, class Between>
HEADRACE_INLINE void decode_blocks(const uint8_t* panel, int64_t first, int64_t count,
                                   uint16_t* tiles, int64_t ring, const Between& between) {
  const Decode decode;
  BlockFactors factors[4];
  const auto place = [&](int64_t i) {
    return place_of_block<Decode, Decode::kScales>(panel, first + i);
  };
  unpack_factors<Decode::kScales>(place(0), Decode::kUnit, factors[0]);
  if (count > 1) unpack_factors<Decode::kScales>(place(1), Decode::kUnit, factors[1]);
  for (int64_t i = 0; i < count; ++i) {
    if (i + 2 < count) {
      unpack_factors<Decode::kScales>(place(i + 2), Decode::kUnit, factors[(i + 2) & 3]);
    }
    const uint8_t* codes = place(i).codes;
    fetch_ahead(codes, bytes_a_block<Decode>());
    decode.decode(factors[i & 3], codes, tiles + (i & (ring - 1)) * kTileElements,
                  [&](int quarter) { between(i, quarter); });
  }
}

/// Decodes blocks of one panel to tiles that follow each other.
template <class Decode>
HEADRACE_LOOP void decode_chunk(const uint8_t* panel, int64_t first, int64_t count,
                                uint16_t* tiles) {
  decode_blocks<Decode>(panel, first, count, tiles, INT64_C(1) << 62, [](int64_t, int) {});
}

/// A quarter of: sums of kNumGroups groups of rows, or of one row alone, += tile times x.
template <int kNumGroups>
HEADRACE_INLINE void multiply_quarter(int quarter, const uint16_t* tile, const uint16_t* x,
                                      const Input& in) {
  if (quarter == 0) tile_load<4>(tile, 2 * kTileCols);
  if (quarter == 1) tile_load<6>(x, in.row_bytes);
  if (quarter == 2) tile_multiply<0, 4, 6>();
  if constexpr (kNumGroups > 1) {
    if (quarter == 2) tile_load<7>(x + in.group, in.row_bytes);
    if (quarter == 3) tile_multiply<1, 4, 7>();
  }
}

template <int kNumGroups>
HEADRACE_INLINE void multiply_panel(const uint16_t* tile, const uint16_t* x, const Input& in) {
  for (int quarter = 0; quarter < 4; ++quarter) multiply_quarter<kNumGroups>(quarter, tile, x, in);
}

/// Sums of groups of rows = all columns of one panel times the rows.
template <class Decode, int kNumGroups>
HEADRACE_LOOP void multiply_few(const uint8_t* panel, int64_t num_blocks, const Input& input,
                                uint16_t* tiles, float* sums) {
  const Input in = input;
  const uint16_t* x = in.x;
  tile_zero<0>();
  if constexpr (kNumGroups > 1) tile_zero<1>();
  if constexpr (std::is_same_v<Decode, DecodeBf16>) {
    const auto* tile = reinterpret_cast<const uint16_t*>(panel);
    for (int64_t block = 0; block < num_blocks; ++block) {
      fetch_ahead(reinterpret_cast<const uint8_t*>(tile), Decode::kBytes);
      multiply_panel<kNumGroups>(tile, x, in);
      tile += kTileElements;
      x += in.block;
    }
  } else {
    const auto tile_of = [&](int64_t block) {
      return tiles + (block & (kRingBlocks - 1)) * kTileElements;
    };
    decode_blocks<Decode>(panel, 0, num_blocks, tiles, kRingBlocks, [&](int64_t i, int quarter) {
      if (i < kBehindBlocks) return;
      multiply_quarter<kNumGroups>(quarter, tile_of(i - kBehindBlocks), x, in);
      if (quarter == 3) x += in.block;
    });
    for (int64_t block = num_blocks < kBehindBlocks ? 0 : num_blocks - kBehindBlocks;
         block < num_blocks; ++block) {
      multiply_panel<kNumGroups>(tile_of(block), x, in);
      x += in.block;
    }
  }
  tile_store<0>(sums, in.row_bytes);
  if constexpr (kNumGroups > 1) tile_store<1>(sums + kSumElements, in.row_bytes);
}

/// Sum tile 2 * group + panel: zero, or as store_sums left it.
template <int kNumGroups>
HEADRACE_INLINE void begin_sums(const float* before) {
  if (before == nullptr) {
    tile_zero<0>();
    tile_zero<1>();
    if constexpr (kNumGroups > 1) tile_zero<2>();
    if constexpr (kNumGroups > 1) tile_zero<3>();
  } else {
    tile_load_passing<0>(before, 64);
    tile_load_passing<1>(before + kSumElements, 64);
    if constexpr (kNumGroups > 1) tile_load_passing<2>(before + 2 * kSumElements, 64);
    if constexpr (kNumGroups > 1) tile_load_passing<3>(before + 3 * kSumElements, 64);
  }
}

template <int kNumGroups>
HEADRACE_INLINE void store_sums(float* sums) {
  tile_store<0>(sums, 64);
  tile_store<1>(sums + kSumElements, 64);
  if constexpr (kNumGroups > 1) tile_store<2>(sums + 2 * kSumElements, 64);
  if constexpr (kNumGroups > 1) tile_store<3>(sums + 3 * kSumElements, 64);
}

/// Tiles of two panels' weights, block by block.
struct Tiles {
  const uint16_t* panel[kPanels];
  int64_t num_blocks;
};

/// Adds weights times groups of rows to sums.
template <int kNumGroups>
HEADRACE_LOOP void multiply_tiles(const Tiles& w, const uint16_t* x, int64_t x_group, bool first,
                                  float* sums) {
  const uint16_t* w0 = w.panel[0];
  const uint16_t* w1 = w.panel[1];
  begin_sums<kNumGroups>(first ? nullptr : sums);
  for (int64_t block = 0; block < w.num_blocks; ++block) {
    tile_load_passing<6>(x, 64);
    tile_load<4>(w0, 64);
    tile_multiply<0, 4, 6>();
    tile_load<5>(w1, 64);
    tile_multiply<1, 5, 6>();
    if constexpr (kNumGroups > 1) {
      tile_load_passing<7>(x + x_group, 64);
      tile_multiply<2, 4, 7>();
      tile_multiply<3, 5, 7>();
    }
    x += kTileElements;
    w0 += kTileElements;
    w1 += kTileElements;
  }
  store_sums<kNumGroups>(sums);
}

/// Two panels (the second perhaps the first again) times many rows.
template <class Decode>
HEADRACE_INLINE void multiply_many(const TileRun& a, const uint8_t* const* panel, const Input& in,
                                   const Outputs* outputs, float* sums, uint16_t* decoded) {
  constexpr int64_t kStepRows = kGroups * kTileGroupRows;
  const int64_t num_blocks = a.x.cols / kTileCols;
  const int64_t num_chunks = (num_blocks + kChunkBlocks - 1) / kChunkBlocks;
  const int64_t chunk = (num_blocks + num_chunks - 1) / num_chunks;
  for (int64_t first = 0; first < num_blocks; first += chunk) {
    const bool last = first + chunk >= num_blocks;
    Tiles w;
    w.num_blocks = last ? num_blocks - first : chunk;
    for (int p = 0; p < kPanels; ++p) {
      if constexpr (std::is_same_v<Decode, DecodeBf16>) {
        w.panel[p] = reinterpret_cast<const uint16_t*>(panel[p]) + first * kTileElements;
      } else {
        uint16_t* tiles = decoded + p * kChunkBlocks * kTileElements;
        decode_chunk<Decode>(panel[p], first, w.num_blocks, tiles);
        w.panel[p] = tiles;
      }
    }
    const uint16_t* x = in.x + first * kTileElements;
    for (int64_t row = 0; row < a.num_rows; row += kStepRows) {
      float* to = sums + row * kPanels * 16;
      const bool both = a.num_rows - row > kTileGroupRows;
      (both ? multiply_tiles<2> : multiply_tiles<1>)(w, x, in.group, first == 0, to);
      x += kGroups * in.group;
      if (!last) continue;
      const int64_t left = a.num_rows - row;
      for (int p = 0; p < kPanels; ++p) {
        Outputs o = outputs[p];
        o.out += row * o.stride;
        write_groups(to + p * kSumElements, o, left < kStepRows ? left : kStepRows,
                     kPanels * kSumElements);
      }
    }
  }
}

template <class Decode>
void tile_panels(const TileRun& a) {
  const bool one_row = a.x.num_rows == 1;
  const bool few = a.num_rows <= 2 * kTileGroupRows;
  const int64_t num_blocks = a.x.cols / kTileCols;
  Input in;
  in.block = one_row ? kTileCols : kTileElements;
  in.group = num_blocks * kTileElements;
  in.row_bytes = one_row ? 4 : 64;
  in.x = a.x.tiles + a.first_row / kTileGroupRows * in.group;
  auto* sums = static_cast<float*>(a.scratch);
  auto* decoded = reinterpret_cast<uint16_t*>(sums + kTileMostRows * kPanels * 16);

  configure_tiles(one_row ? 1 : 16);
  const int64_t num_panels = (a.num_outputs + kPanelRows - 1) / kPanelRows;
  const int64_t step = few ? 1 : kPanels;
  for (int64_t first = 0; first < num_panels; first += step) {
    const uint8_t* panel[kPanels];
    Outputs outputs[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      panel[p] = a.panels + (first + p < num_panels ? first + p : first) * a.panel_bytes;
      const int64_t at = (first + p) * kPanelRows;
      outputs[p] = {a.out + a.first_row * a.out_stride + at, a.out_stride, a.num_outputs - at,
                    a.bias == nullptr ? nullptr : a.bias + at};
    }
    if (!few) {
      multiply_many<Decode>(a, panel, in, outputs, sums, decoded);
      continue;
    }
    const bool two_groups = a.num_rows > kTileGroupRows;
    (two_groups ? multiply_few<Decode, 2> : multiply_few<Decode, 1>)(panel[0], num_blocks, in,
                                                                     decoded, sums);
    if (one_row) {  // the sums are a row already
      const Outputs& o = outputs[0];
      const __mmask16 lanes = first_lanes(o.lanes);
      __m512 y = _mm512_load_ps(sums);
      if (o.bias != nullptr) y = y + _mm512_maskz_loadu_ps(lanes, o.bias);
      _mm512_mask_storeu_ps(o.out, lanes, y);
    } else {
      write_groups(sums, outputs[0], a.num_rows, kSumElements);
    }
  }
  release_tiles();
}

}  // namespace
}  // namespace headrace
