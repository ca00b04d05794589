// The codes and scales of packed panels (panel_layout.h), brought to the form that dot products
// read.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

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
  static constexpr int64_t kBytes = kBlockCodesBytes[static_cast<size_t>(PanelCodes::u4)];
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
  static constexpr int64_t kBytes = kBlockCodesBytes[static_cast<size_t>(PanelCodes::u5)];
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
  static constexpr int64_t kBytes = kBlockCodesBytes[static_cast<size_t>(PanelCodes::u6)];
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
  static constexpr int64_t kBytes = kBlockCodesBytes[static_cast<size_t>(PanelCodes::s8)];
  static constexpr int kLargest = 128;
  static constexpr bool kSigned = true;
  HEADRACE_INLINE void unpack(const uint8_t* codes, vu8* w) {
    for (int s = 0; s < 8; ++s) w[s] = load_bytes(codes + 64 * s);
  }
};

/// s8_planes: the lower bits come from elsewhere.
struct CodesS8Planes : CodesS8 {
  static constexpr int64_t kBytes = kBlockCodesBytes[static_cast<size_t>(PanelCodes::s8_planes)];
  static constexpr bool kHasLowPlane = true;
  HEADRACE_INLINE void unpack(const uint8_t* codes, const uint8_t* low, vu8* w) {
    CodesU5::unpack(codes, w);
    const vu8 third = load_bytes(low + 128);
    for (int s = 0; s < 8; ++s) {
      const vu8 two = bits(load_bytes(low + 64 * (s / 4)), s % 4 * 2, 0x03);
      const vu8 one = s <= 2 ? bits_up(third, 2 - s, 0x04) : bits(third, s - 2, 0x04);
      // Five bits, moved within 16, stay in their byte.
      w[s] = ((vu8)((vu16)w[s] << 3) | two | one) ^ 0x80;
    }
  }
};

/// The scales of 32 columns, sixteen lanes each.
struct BlockScales {
  F16x scale;         ///< of columns 0 to 31, or 0 to 15 where there are two
  F16x second_scale;  ///< k_signed: of columns 16 to 31
  F16x min;           ///< with_min, k_min: to be added
};

/// Where a block's record begins in its panel, the block's place in it, and where its codes are.
struct BlockPlace {
  const uint8_t* record;
  int64_t index;
  const uint8_t* codes;
};

template <class Codes, PanelScales kScales>
HEADRACE_INLINE BlockPlace place_of_block(const uint8_t* panel, int64_t block) {
  constexpr int64_t kBlocks = kRecordBlocks[static_cast<size_t>(kScales)];
  constexpr int64_t kScalesBytes = kRecordScalesBytes[static_cast<size_t>(kScales)];
  const uint64_t record = static_cast<uint64_t>(block) / kBlocks;
  const int64_t index = static_cast<int64_t>(static_cast<uint64_t>(block) % kBlocks);
  const uint8_t* at = panel + record * (kScalesBytes + kBlocks * Codes::kBytes);
  return {at, index, at + kScalesBytes + index * Codes::kBytes};
}

template <PanelScales kScales>
HEADRACE_INLINE BlockScales load_scales(const BlockPlace& place) {
  BlockScales s = {};
  const auto halves = [](const uint8_t* x) { return load(reinterpret_cast<const uint16_t*>(x)); };
  const uint8_t* record = place.record;
  if constexpr (kScales == PanelScales::one) {
    s.scale = halves(record + 32 * place.index);
  } else if constexpr (kScales == PanelScales::with_min) {
    s.scale = halves(record);
    s.min = halves(record + 32);
  } else if constexpr (kScales == PanelScales::k_min) {
    const uint8_t* small = record + 64 + 32 * place.index;
    // Products of an f16 and 6 bits are exact.
    s.scale = halves(record) * load_integers(small);
    s.min = splat(0.0F) - halves(record + 32) * load_integers(small + 16);
  } else {
    const auto* small = reinterpret_cast<const int8_t*>(record + 32 + 32 * place.index);
    s.scale = halves(record) * load_integers(small);
    s.second_scale = halves(record) * load_integers(small + 16);
  }
  return s;
}

}  // namespace
}  // namespace headrace
