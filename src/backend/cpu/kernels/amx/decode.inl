// Packed weights (tile_layout.h) to tiles of bf16: each weight is computed in float32 as the
// format's reference decode does, then rounded to the nearest bf16, ties away from zero (one
// integer addition, which a NaN with a large payload would not survive: factors have none such).
//
// Codes of few bits are looked up: a row and block have 16 or 32 different weights, which one or
// two vectors of arithmetic give, and a byte permutation picks them. That is 5 instructions for 32
// weights of 4 bits, not counting loads and stores.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/body/codes.inl"

#define HEADRACE_MEMBER inline __attribute__((always_inline))

namespace headrace {
namespace {

/// A constant that stays in a register: the compiler would rather load it anew each time.
HEADRACE_INLINE __m512i keep(__m512i x) {
  asm("" : "+v"(x));
  return x;
}
HEADRACE_INLINE __m512 keep(__m512 x) {
  asm("" : "+v"(x));
  return x;
}

HEADRACE_INLINE __m512i load_vector(const uint8_t* x) {
  __m512i v;
  std::memcpy(&v, x, sizeof(v));
  return v;
}

HEADRACE_INLINE void store_row(uint16_t* tile, int row, __m512i x) {
  std::memcpy(tile + row * kTileCols, &x, sizeof(x));
}

/// Ternary logic: bits of a where mask is set, of b elsewhere.
HEADRACE_INLINE __m512i select_bits(__m512i mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi32(mask, a, b, 0xca);
}
/// (x & mask) | bits.
HEADRACE_INLINE __m512i mask_and_set(__m512i x, __m512i mask, __m512i bits) {
  return _mm512_ternarylogic_epi32(x, mask, bits, 0xea);
}

HEADRACE_INLINE __m512 iota() {
  return _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}

/// For _mm512_multishift_epi64_epi8: both bytes of 16-bit element t of each 64-bit word get the 8
/// bits that begin at bit `first + t * step` (modulo 64).
HEADRACE_INLINE __m512i bit_positions(int first, int step) {
  uint64_t word = 0;
  for (int t = 3; t >= 0; --t) {
    const auto at = static_cast<uint64_t>((first + t * step) & 63);
    word = word << 16 | at << 8 | at;
  }
  return _mm512_set1_epi64(static_cast<long long>(word));
}

/// Two vectors of float32 bits, already rounded up by half a bf16, to words: low words from `low`.
HEADRACE_INLINE __m512i pack_words(__m512i low, __m512i high) {
  return select_bits(_mm512_set1_epi32(0xffff), _mm512_srli_epi32(low, 16), high);
}

HEADRACE_INLINE __m512i half_up(__m512 x, __m512i half) {
  return _mm512_add_epi32((__m512i)x, half);
}

/// Each NaN as the one whose upper half is a NaN too, also after half_up.
HEADRACE_INLINE __m512 plain_nans(__m512 x) {
  const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
  return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}

HEADRACE_INLINE __m512 load_halves(const uint8_t* x) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
HEADRACE_INLINE __m512 load_s8(const uint8_t* x) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
}

/// The factors of one block of 32 columns, by row. Unpacked some blocks before they are used, so
/// that they come out of the cache and not out of the store buffer.
struct alignas(64) BlockFactors {
  float scale[16];
  float other[16];  ///< with_min, k_min: to be added; k_signed: the scale of columns 16 to 31
};

template <PanelScales kScales>
HEADRACE_INLINE void unpack_factors(const BlockPlace& place, float unit, BlockFactors& out) {
  if constexpr (kScales != PanelScales::none) {
    const BlockScales scales = load_scales<kScales>(place);
    if constexpr (kScales == PanelScales::k_signed) {
      // The unit is a power of 2: its product is exact.
      _mm512_store_ps(out.scale, plain_nans(scales.scale.p[0] * unit));
      _mm512_store_ps(out.other, plain_nans(scales.second_scale.p[0] * unit));
    } else {
      _mm512_store_ps(out.scale, plain_nans(scales.scale.p[0]));
      if constexpr (kScales != PanelScales::one) {
        _mm512_store_ps(out.other, plain_nans(scales.min.p[0]));
      }
    }
  }
}

/// The weights of a row's codes: level * scale (+ min). The product is exact with a min (an f16 or
/// a product of f16 and 6 bits, times at most 5 bits), so that the fused operation rounds as the
/// reference does.
template <PanelScales kScales>
HEADRACE_INLINE __m512 weights_of(__m512 levels, const BlockFactors& f, int row) {
  const __m512 scale = _mm512_set1_ps(f.scale[row]);
  if constexpr (kScales == PanelScales::one) {
    return levels * scale;
  } else {
    return _mm512_fmadd_ps(levels, scale, _mm512_set1_ps(f.other[row]));
  }
}

// A decoder for each kind of codes. Its `decode` writes a block's tile; between(0) to between(3)
// are called on the way, for work that other parts of the processor do meanwhile.

template <PanelScales kScalesKind, int kOffset>
struct DecodeU4 {
  static constexpr PanelScales kScales = kScalesKind;
  static constexpr int64_t kBytes = 256;
  static constexpr float kUnit = 1.0F;

  // A byte of the index: bits 2 to 5 the code, bit 1 set (a weight is the upper half of a 32-bit
  // element), bit 0 which byte of it.
  const __m512 levels = keep(iota() - _mm512_set1_ps(kOffset));
  const __m512i half = keep(_mm512_set1_epi32(0x8000));
  const __m512i code_bits = keep(_mm512_set1_epi8(0x3c));
  const __m512i upper_half = keep(_mm512_set1_epi16(0x0302));
  const __m512i positions[4] = {keep(bit_positions(-2, 4)), keep(bit_positions(14, 4)),
                                keep(bit_positions(30, 4)), keep(bit_positions(46, 4))};

  template <class Between>
  HEADRACE_MEMBER void decode(const BlockFactors& f, const uint8_t* codes, uint16_t* tile,
                              const Between& between) const {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      between(i);
      const __m512i v = load_vector(codes + 64 * i);
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        const int row = 4 * i + s;
        const __m512i table = half_up(weights_of<kScales>(levels, f, row), half);
        const __m512i index =
            mask_and_set(_mm512_multishift_epi64_epi8(positions[s], v), code_bits, upper_half);
        store_row(tile, row, _mm512_permutexvar_epi8(index, table));
      }
    }
  }
};

template <PanelScales kScalesKind, int kOffset>
struct DecodeU5 {
  static constexpr PanelScales kScales = kScalesKind;
  static constexpr int64_t kBytes = 320;
  static constexpr float kUnit = 1.0F;

  // A byte of the index: bits 2 to 5 the code's low bits, bit 1 its fifth bit (weights of the codes
  // from 16 on are the upper halves of 32-bit elements), bit 0 which byte of the weight.
  const __m512 low_levels = keep(iota() - _mm512_set1_ps(kOffset));
  const __m512 high_levels = keep(iota() + _mm512_set1_ps(16 - kOffset));
  const __m512i half = keep(_mm512_set1_epi32(0x8000));
  const __m512i low_words = keep(_mm512_set1_epi32(0xffff));
  const __m512i code_bits = keep(_mm512_set1_epi8(0x3e));
  const __m512i upper_byte = keep(_mm512_set1_epi16(0x0100));
  const __m512i positions[3] = {keep(bit_positions(-1, 5)), keep(bit_positions(19, 5)),
                                keep(bit_positions(39, 5))};

  HEADRACE_MEMBER void put(const BlockFactors& f, int row, __m512i fields, uint16_t* tile) const {
    const __m512i low = half_up(weights_of<kScales>(low_levels, f, row), half);
    const __m512i high = half_up(weights_of<kScales>(high_levels, f, row), half);
    const __m512i table = select_bits(low_words, _mm512_srli_epi32(low, 16), high);
    const __m512i index = mask_and_set(fields, code_bits, upper_byte);
    store_row(tile, row, _mm512_permutexvar_epi8(index, table));
  }

  template <class Between>
  HEADRACE_MEMBER void decode(const BlockFactors& f, const uint8_t* codes, uint16_t* tile,
                              const Between& between) const {
    __m512i last = _mm512_setzero_si512();
#pragma GCC unroll 5
    for (int i = 0; i < 5; ++i) {
      if (i < 4) between(i);
      const __m512i v = load_vector(codes + 64 * i);
#pragma GCC unroll 3
      for (int s = 0; s < 3; ++s) {
        put(f, 3 * i + s, _mm512_multishift_epi64_epi8(positions[s], v), tile);
      }
      // Bit i of the last row's codes, brought to bit 1 + i of the index.
      const __m512i bit = _mm512_multishift_epi64_epi8(bit_positions(59 - i, 1), v);
      last = select_bits(_mm512_set1_epi8(static_cast<char>(2 << i)), bit, last);
    }
    put(f, 15, last, tile);
  }
};

struct DecodeU6 {
  static constexpr PanelScales kScales = PanelScales::k_signed;
  static constexpr int64_t kBytes = 384;
  // Codes minus 32 stand in the upper six bits of 32-bit integers.
  static constexpr float kUnit = 0x1p-26F;

  const __m512i half = keep(_mm512_set1_epi32(0x8000));
  const __m512i low_bits = keep(_mm512_set1_epi8(0x3c));
  const __m512i code_bits = keep(_mm512_set1_epi8(static_cast<char>(0xfc)));
  const __m512i sign = keep(_mm512_set1_epi8(static_cast<char>(0x80)));
  const __m512i first_bytes = keep(_mm512_slli_epi32(
      _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 24));

  /// Bytes 16 q to 16 q + 15 as the uppermost bytes of integers, to floats, times a row's scales.
  HEADRACE_MEMBER __m512i weights(__m512i bytes, int q, __m512 scale) const {
    const __m512i index = _mm512_add_epi32(first_bytes, _mm512_set1_epi32(q << 28));
    const __m512i integers = _mm512_maskz_permutexvar_epi8(0x8888888888888888U, index, bytes);
    return half_up(_mm512_cvtepi32_ps(integers) * scale, half);
  }

  template <class Between>
  HEADRACE_MEMBER void decode(const BlockFactors& f, const uint8_t* codes, uint16_t* tile,
                              const Between& between) const {
#pragma GCC unroll 8
    for (int pair = 0; pair < 8; ++pair) {  // rows 2 pair, 2 pair + 1
      if (pair % 2 == 0) between(pair / 2);
      const __m512i low = load_vector(codes + 64 * (pair / 2));
      const __m512i high = load_vector(codes + 256 + 64 * (pair / 4));
      const __m512i low_at = pair % 2 == 0 ? _mm512_slli_epi16(low, 2) : _mm512_srli_epi16(low, 2);
      const __m512i high_at = _mm512_slli_epi16(high, 6 - 2 * (pair % 4));
      // (x & code_bits) ^ sign: 4 * (code - 32).
      const __m512i bytes =
          _mm512_ternarylogic_epi32(select_bits(low_bits, low_at, high_at), code_bits, sign, 0x6a);
#pragma GCC unroll 2
      for (int e = 0; e < 2; ++e) {
        const int row = 2 * pair + e;
        const __m512 scale = _mm512_mask_blend_ps(0xff00, _mm512_set1_ps(f.scale[row]),
                                                  _mm512_set1_ps(f.other[row]));
        store_row(tile, row,
                  pack_words(weights(bytes, 2 * e, scale), weights(bytes, 2 * e + 1, scale)));
      }
    }
  }
};

struct DecodeS8 {
  static constexpr PanelScales kScales = PanelScales::one;
  static constexpr int64_t kBytes = 512;
  static constexpr float kUnit = 1.0F;

  const __m512i half = keep(_mm512_set1_epi32(0x8000));

  template <class Between>
  HEADRACE_MEMBER void decode(const BlockFactors& f, const uint8_t* codes, uint16_t* tile,
                              const Between& between) const {
#pragma GCC unroll 16
    for (int row = 0; row < 16; ++row) {
      if (row % 4 == 0) between(row / 4);
      const __m512 scale = _mm512_set1_ps(f.scale[row]);
      const __m512i evens = half_up(load_s8(codes + 32 * row) * scale, half);
      const __m512i odds = half_up(load_s8(codes + 32 * row + 16) * scale, half);
      store_row(tile, row, pack_words(evens, odds));
    }
  }
};

struct DecodeF16 {
  static constexpr PanelScales kScales = PanelScales::none;
  static constexpr int64_t kBytes = 1024;
  static constexpr float kUnit = 1.0F;

  const __m512i half = keep(_mm512_set1_epi32(0x8000));

  template <class Between>
  HEADRACE_MEMBER void decode(const BlockFactors&, const uint8_t* codes, uint16_t* tile,
                              const Between& between) const {
#pragma GCC unroll 16
    for (int row = 0; row < 16; ++row) {
      if (row % 4 == 0) between(row / 4);
      const __m512i evens = half_up(plain_nans(load_halves(codes + 64 * row)), half);
      const __m512i odds = half_up(plain_nans(load_halves(codes + 64 * row + 32)), half);
      store_row(tile, row, pack_words(evens, odds));
    }
  }
};

/// Weights that are tiles of bf16 already.
struct DecodeBf16 {
  static constexpr PanelScales kScales = PanelScales::none;
  static constexpr int64_t kBytes = 2 * kTileElements;
};

}  // namespace
}  // namespace headrace
