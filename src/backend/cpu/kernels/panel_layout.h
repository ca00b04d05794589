// How integer weights lie in a packed panel: 16 rows interleaved, so that one vector register holds
// 4 consecutive columns of 16 rows and a dot product never sums across lanes. The same bytes serve
// AVX2 and AVX-512. Plain constants only: instruction-set files include this header.
//
// A panel of `cols` columns is a sequence of records that lie in the order in which they are used.
// A record has the scales of some blocks of 32 columns, padded to 64 bytes, then the codes of each
// of these blocks; the last record may have fewer blocks. Everything is stored row by row ("16 x":
// one value for each of the 16 rows).
//
// Scales (f16 is IEEE binary16, as in the files), blocks a record in brackets:
//   one (2)       for each block: 16 x f16 d                   weight = d * (code - offset)
//   with_min (1)  16 x f16 d, 16 x f16 m                       weight = d * code + m
//   k_min (8)     16 x f16 d, 16 x f16 dmin, then for each block
//                 16 x u8 scale, 16 x u8 min                   weight = d*scale*code - dmin*min
//   k_signed (8)  16 x f16 d, then for each block and each half of it
//                 16 x s8 scale                                weight = d*scale*(code - offset)
//
// Codes of a block. In a vector of 64 bytes, byte 4 r + b belongs to row r; "step s" is columns 4 s
// to 4 s + 3, of which b counts the column.
//   u4 (256 bytes): 4 vectors; vector j: low nibbles step j, high nibbles step j + 4
//   u5 (320 bytes): u4's vectors, then one vector whose bit s is bit 4 of step s
//   u6 (384 bytes): u4's vectors, then 2 vectors; bits 2 t, 2 t + 1 of vector i: bits 4, 5 of step
//                   4 i + t
//   s8 (512 bytes): 8 vectors; vector s: step s, signed
//
// Panels of f16 and bf16 have neither records nor scales, and any number of columns: for each
// column 16 x the number.
#pragma once

#include <cstdint>

namespace headrace {

/// Columns of a block: they share a scale of the activations.
inline constexpr int64_t kBlockCols = 32;

enum class PanelCodes : uint8_t { u4, u5, u6, s8, f16, bf16 };
enum class PanelScales : uint8_t { one, with_min, k_min, k_signed, none };

/// By PanelScales: blocks of a record, and bytes of its scales.
inline constexpr int64_t kRecordBlocks[] = {2, 1, 8, 8, 1};
inline constexpr int64_t kRecordScalesBytes[] = {64, 64, 320, 320, 0};
/// By PanelCodes: bytes of a block's codes.
inline constexpr int64_t kBlockCodesBytes[] = {256, 320, 384, 512, 1024, 1024};

/// How the codes of a block are ordered: as above, or as in tile_layout.h.
enum class PanelOrder : uint8_t { columns, tiles };

/// What is packed, in the order of KernelTable::int_panels and tile_panels; integers first.
enum class PanelFormat : uint8_t { q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, f16, bf16 };
inline constexpr int kNumIntPanelFormats = 8;
inline constexpr int kNumPanelFormats = 10;

}  // namespace headrace
