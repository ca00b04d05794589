// Packed integer weights, 16 rows interleaved, times rows of quantised activations. The including
// file has the instruction set's dot product before this one, see <isa>/dot.inl:
//   dot_steps<Codes, n>(w, x): of each lane, the sum over n steps of 4 columns of code * x, exact.
// Integer sums are exact and the epilogue of a block is written once here, so that a row's result
// does not depend on how many rows run together.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace {
namespace {

using vu8 = uint8_t __attribute__((vector_size(4 * HEADRACE_LANES)));
using vu16 = uint16_t __attribute__((vector_size(4 * HEADRACE_LANES)));

HEADRACE_INLINE vu8 load_bytes(const uint8_t* x) {
  vu8 v;
  std::memcpy(&v, x, sizeof(v));
  return v;
}

/// (x >> n) & mask in each byte.
HEADRACE_INLINE vu8 bits(vu8 x, int n, uint8_t mask) {
  return (vu8)((vu16)x >> n) & mask;
}
/// (x << n) & mask in each byte.
HEADRACE_INLINE vu8 bits_up(vu8 x, int n, uint8_t mask) {
  return (vu8)((vu16)x << n) & mask;
}

// Each kind of codes: unpack gives the 8 steps of 32 columns, for the lanes of one machine vector.
// kLargest is the largest code.

struct CodesU4 {
  static constexpr int64_t kBytes = 256;
  static constexpr int kLargest = 15;
  static constexpr bool kSigned = false;
  HEADRACE_INLINE void unpack(const uint8_t* codes, vu8* w) {
    for (int j = 0; j < 4; ++j) {
      const vu8 v = load_bytes(codes + 64 * j);
      w[j] = v & 0x0f;
      w[j + 4] = bits(v, 4, 0x0f);
    }
  }
};

struct CodesU5 {
  static constexpr int64_t kBytes = 320;
  static constexpr int kLargest = 31;
  static constexpr bool kSigned = false;
  HEADRACE_INLINE void unpack(const uint8_t* codes, vu8* w) {
    CodesU4::unpack(codes, w);
    const vu8 high = load_bytes(codes + 256);
    for (int s = 0; s < 8; ++s) {
      w[s] |= s <= 4 ? bits_up(high, 4 - s, 0x10) : bits(high, s - 4, 0x10);
    }
  }
};

struct CodesU6 {
  static constexpr int64_t kBytes = 384;
  static constexpr int kLargest = 63;
  static constexpr bool kSigned = false;
  HEADRACE_INLINE void unpack(const uint8_t* codes, vu8* w) {
    CodesU4::unpack(codes, w);
    for (int s = 0; s < 8; ++s) {
      const vu8 high = load_bytes(codes + 256 + 64 * (s / 4));
      const int t = s % 4;
      w[s] |= t <= 2 ? bits_up(high, 4 - 2 * t, 0x30) : bits(high, 2 * t - 4, 0x30);
    }
  }
};

struct CodesS8 {
  static constexpr int64_t kBytes = 512;
  static constexpr int kLargest = 128;  // of the magnitude
  static constexpr bool kSigned = true;
  HEADRACE_INLINE void unpack(const uint8_t* codes, vu8* w) {
    for (int s = 0; s < 8; ++s) w[s] = load_bytes(codes + 64 * s);
  }
};

/// The scales of 32 columns, 16 lanes each.
struct BlockScales {
  F16x scale;         ///< of columns 0 to 31, or 0 to 15 where there are two
  F16x second_scale;  ///< k_signed: of columns 16 to 31
  F16x min;           ///< with_min, k_min: to be added
};

template <PanelScales kScales>
HEADRACE_INLINE BlockScales load_scales(const uint8_t* scales, int64_t block) {
  BlockScales s = {};
  const auto halves = [](const uint8_t* x) { return load(reinterpret_cast<const uint16_t*>(x)); };
  constexpr int64_t kBlocks = kSuperBlockCols / kBlockCols;
  if constexpr (kScales == PanelScales::one) {
    s.scale = halves(scales + 32 * block);
  } else if constexpr (kScales == PanelScales::with_min) {
    s.scale = halves(scales + 64 * block);
    s.min = halves(scales + 64 * block + 32);
  } else if constexpr (kScales == PanelScales::k_min) {
    const uint8_t* record = scales + block / kBlocks * (64 + 32 * kBlocks);
    const uint8_t* small = record + 64 + 32 * (block % kBlocks);
    // Products of an f16 and 6 bits are exact.
    s.scale = halves(record) * load_integers(small);
    s.min = splat(0.0F) - halves(record + 32) * load_integers(small + 16);
  } else {
    const uint8_t* record = scales + block / kBlocks * (32 + 32 * kBlocks);
    const auto* small = reinterpret_cast<const int8_t*>(record + 32 + 32 * (block % kBlocks));
    s.scale = halves(record) * load_integers(small);
    s.second_scale = halves(record) * load_integers(small + 16);
  }
  return s;
}

/// sum over n steps of (code - offset) * x, exact: below 2^31, since with two planes
/// 32 columns * 255 * (128 * 127 + 64) = 1.4e8.
template <class Codes, int kOffset, int kSteps, int kPlanes>
HEADRACE_INLINE vi centered_dot(const vu8* w, const int8_t* high, const int8_t* low,
                                int32_t x_sum) {
  vi dot = dot_steps<Codes, kSteps>(w, high);
  if constexpr (kPlanes == 2) dot = dot * 128 + dot_steps<Codes, kSteps>(w, low);
  if constexpr (kOffset != 0) dot -= kOffset * x_sum;
  return dot;
}

HEADRACE_INLINE vf mul_add_part(vf a, vf b, vf c) {
#if HEADRACE_LANES == 16
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}

template <class Codes, PanelScales kScales, int kOffset, int kPlanes, int kRows>
void int_panel_rows(const IntPanel& a, int64_t first_row) {
  const int64_t num_blocks = a.x.cols / kBlockCols;
  F16x sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = splat(0.0F);
  for (int64_t block = 0; block < num_blocks; ++block) {
    const BlockScales scales = load_scales<kScales>(a.scales, block);
    for (int part = 0; part < kParts; ++part) {
      vu8 w[8];
      Codes::unpack(a.codes + block * Codes::kBytes + part * 4 * HEADRACE_LANES, w);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const int64_t at = (first_row + r) * a.x.cols + block * kBlockCols;
        const int64_t block_at = (first_row + r) * num_blocks + block;
        const int8_t* high = a.x.high + at;
        const int8_t* low = kPlanes == 2 ? a.x.low + at : nullptr;
        const int32_t* sums = a.x.sums + 2 * block_at;
        const float x_scale = a.x.scale[block_at];
        vf total = sum[r].p[part];
        if constexpr (kScales == PanelScales::k_signed) {
          const int8_t* second_low = kPlanes == 2 ? low + 16 : nullptr;
          const vi first = centered_dot<Codes, kOffset, 4, kPlanes>(w, high, low, sums[0]);
          const vi second =
              centered_dot<Codes, kOffset, 4, kPlanes>(w + 4, high + 16, second_low, sums[1]);
          total = mul_add_part(__builtin_convertvector(first, vf), scales.scale.p[part] * x_scale,
                               total);
          total = mul_add_part(__builtin_convertvector(second, vf),
                               scales.second_scale.p[part] * x_scale, total);
        } else {
          const vi dot = centered_dot<Codes, kOffset, 8, kPlanes>(w, high, low, sums[0] + sums[1]);
          total =
              mul_add_part(__builtin_convertvector(dot, vf), scales.scale.p[part] * x_scale, total);
        }
        if constexpr (kScales == PanelScales::with_min || kScales == PanelScales::k_min) {
          total = mul_add_part(scales.min.p[part], a.x.scaled_sum[block_at] - vf{}, total);
        }
        sum[r].p[part] = total;
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    store_panel_row(a.out + (first_row + r) * a.out_stride, sum[r], a.bias, a.num_lanes);
  }
}

template <int kPlanes, class Codes, PanelScales kScales, int kOffset>
void int_panel(const IntPanel& a) {
  int64_t r = 0;
  if constexpr (kRowsTogether > 4) {
    for (; r + 8 <= a.num_rows; r += 8) int_panel_rows<Codes, kScales, kOffset, kPlanes, 8>(a, r);
  }
  for (; r + 4 <= a.num_rows; r += 4) int_panel_rows<Codes, kScales, kOffset, kPlanes, 4>(a, r);
  for (; r + 2 <= a.num_rows; r += 2) int_panel_rows<Codes, kScales, kOffset, kPlanes, 2>(a, r);
  for (; r < a.num_rows; ++r) int_panel_rows<Codes, kScales, kOffset, kPlanes, 1>(a, r);
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

const PanelFunction int8_panels[kNumPanelFormats] = {
    int_panel<1, CodesU4, PanelScales::one, 8>,
    int_panel<1, CodesU4, PanelScales::with_min, 0>,
    int_panel<1, CodesU5, PanelScales::one, 16>,
    int_panel<1, CodesU5, PanelScales::with_min, 0>,
    int_panel<1, CodesS8, PanelScales::one, kSignedOffset>,
    int_panel<1, CodesU4, PanelScales::k_min, 0>,
    int_panel<1, CodesU5, PanelScales::k_min, 0>,
    int_panel<1, CodesU6, PanelScales::k_signed, 32>,
};
const PanelFunction int15_panels[kNumPanelFormats] = {
    int_panel<2, CodesU4, PanelScales::one, 8>,
    int_panel<2, CodesU4, PanelScales::with_min, 0>,
    int_panel<2, CodesU5, PanelScales::one, 16>,
    int_panel<2, CodesU5, PanelScales::with_min, 0>,
    int_panel<2, CodesS8, PanelScales::one, kSignedOffset>,
    int_panel<2, CodesU4, PanelScales::k_min, 0>,
    int_panel<2, CodesU5, PanelScales::k_min, 0>,
    int_panel<2, CodesU6, PanelScales::k_signed, 32>,
};

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
