// See panel_pack.h. Formats are read into Block32, panels are written from it, and the other way
// round for single rows.
#include "backend/cpu/panel_pack.h"

#include <cstring>

#include "backend/cpu/kernels/kernel_table.h"
#include "backend/cpu/tile_codes.h"
#include "base/checked.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"
#include "tensor/half.h"

namespace headrace {
namespace {

/// Blocks of 32 columns in a block of 256 of the file.
constexpr int64_t kBlocksPerSuper = 8;

/// 32 columns of one row.
struct Block32 {
  alignas(32) uint8_t codes[32];  ///< s8: the bits of the signed code
  uint16_t d = 0;
  uint16_t m = 0;         ///< with_min: m; k_min: dmin
  uint8_t small[2] = {};  ///< k_min: scale and min; k_signed: the scales of the halves
};

template <class T>
T read_block(const std::byte* row, int64_t index) {
  T block;
  std::memcpy(&block, row + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return block;
}

void split_nibbles(const uint8_t* qs, uint8_t* codes) {
  for (int i = 0; i < 16; ++i) codes[i] = qs[i] & 0x0f;
  for (int i = 0; i < 16; ++i) codes[16 + i] = static_cast<uint8_t>(qs[i] >> 4);
}

/// Bit i of qh becomes bit 4 of codes[i], eight codes at a time.
void add_fifth_bits(const uint8_t* qh, uint8_t* codes) {
  for (int byte = 0; byte < 4; ++byte) {
    // Byte i keeps bit i; adding 0x7f carries any bit into bit 7, which then moves to bit 4.
    const uint64_t spread = (qh[byte] * 0x0101010101010101U) & 0x8040201008040201U;
    const uint64_t fifth = ((spread + 0x7f7f7f7f7f7f7f7fU) >> 3) & 0x1010101010101010U;
    uint64_t eight;
    std::memcpy(&eight, codes + 8 * byte, 8);
    eight |= fifth;
    std::memcpy(codes + 8 * byte, &eight, 8);
  }
}

/// Columns 32 i to 32 i + 31 of a row.
template <PanelFormat kFormat>
Block32 read_block32(const std::byte* row, int64_t i) {
  Block32 out;
  if constexpr (kFormat == PanelFormat::q4_0) {
    const auto block = read_block<BlockQ4_0>(row, i);
    out.d = block.d;
    split_nibbles(block.qs, out.codes);
  } else if constexpr (kFormat == PanelFormat::q4_1) {
    const auto block = read_block<BlockQ4_1>(row, i);
    out.d = block.d;
    out.m = block.m;
    split_nibbles(block.qs, out.codes);
  } else if constexpr (kFormat == PanelFormat::q5_0) {
    const auto block = read_block<BlockQ5_0>(row, i);
    out.d = block.d;
    split_nibbles(block.qs, out.codes);
    add_fifth_bits(block.qh, out.codes);
  } else if constexpr (kFormat == PanelFormat::q5_1) {
    const auto block = read_block<BlockQ5_1>(row, i);
    out.d = block.d;
    out.m = block.m;
    split_nibbles(block.qs, out.codes);
    add_fifth_bits(block.qh, out.codes);
  } else if constexpr (kFormat == PanelFormat::q8_0) {
    const auto block = read_block<BlockQ8_0>(row, i);
    out.d = block.d;
    std::memcpy(out.codes, block.qs, 32);
  } else {
    using Block =
        std::conditional_t<kFormat == PanelFormat::q4_k, BlockQ4_K,
                           std::conditional_t<kFormat == PanelFormat::q5_k, BlockQ5_K, BlockQ6_K>>;
    const auto block = read_block<Block>(row, i / kBlocksPerSuper);
    const auto group = static_cast<int>(i % kBlocksPerSuper);
    out.d = block.d;
    if constexpr (kFormat == PanelFormat::q6_k) {
      const uint8_t* ql = block.ql + group / 4 * 64 + group % 2 * 32;
      const uint8_t* qh = block.qh + group / 4 * 32;
      const int low_shift = group / 2 % 2 * 4;
      const int high_shift = group % 4 * 2;
      for (int j = 0; j < 32; ++j) {
        out.codes[j] =
            static_cast<uint8_t>(((ql[j] >> low_shift) & 0x0f) | ((qh[j] >> high_shift) & 3) << 4);
      }
      std::memcpy(out.small, block.scales + 2 * group, 2);
    } else {
      out.m = block.dmin;
      const KScaleMin k = k_scale_min(block.scales, group);
      out.small[0] = k.scale;
      out.small[1] = k.min;
      const uint8_t* qs = block.qs + group / 2 * 32;
      const int shift = group % 2 * 4;
      for (int j = 0; j < 32; ++j) out.codes[j] = (qs[j] >> shift) & 0x0f;
      if constexpr (kFormat == PanelFormat::q5_k) {
        for (int j = 0; j < 32; ++j) {
          out.codes[j] = static_cast<uint8_t>(out.codes[j] | ((block.qh[j] >> group) & 1) << 4);
        }
      }
    }
  }
  return out;
}

uint32_t load_four(const uint8_t* x) {
  uint32_t v;
  std::memcpy(&v, x, 4);
  return v;
}

void store_four(uint8_t* out, uint32_t v) {
  std::memcpy(out, &v, 4);
}

/// In the order of columns: four columns of one row at once, as the four bytes of a word.
void write_codes(const PanelLayout& layout, const uint8_t* codes, int64_t lane, uint8_t* block) {
  const PanelCodes kind = layout.codes;
  if (layout.order == PanelOrder::tiles) return write_tile_codes(kind, codes, lane, block);
  block += 4 * lane;
  if (kind == PanelCodes::s8) {
    for (int s = 0; s < 8; ++s) store_four(block + 64 * s, load_four(codes + 4 * s));
    return;
  }
  for (int j = 0; j < 4; ++j) {
    const uint32_t low = load_four(codes + 4 * j) & 0x0f0f0f0fU;
    const uint32_t high = load_four(codes + 4 * (j + 4)) & 0x0f0f0f0fU;
    store_four(block + 64 * j, low | high << 4);
  }
  if (kind == PanelCodes::u5) {
    uint32_t bits = 0;
    for (int s = 0; s < 8; ++s) bits |= ((load_four(codes + 4 * s) >> 4) & 0x01010101U) << s;
    store_four(block + 256, bits);
  } else if (kind == PanelCodes::u6) {
    for (int i = 0; i < 2; ++i) {
      uint32_t bits = 0;
      for (int t = 0; t < 4; ++t) {
        bits |= ((load_four(codes + 4 * (4 * i + t)) >> 4) & 0x03030303U) << (2 * t);
      }
      store_four(block + 256 + 64 * i, bits);
    }
  }
}

void read_codes(const PanelLayout& layout, const uint8_t* block, int64_t lane, uint8_t* codes) {
  const PanelCodes kind = layout.codes;
  if (layout.order == PanelOrder::tiles) return read_tile_codes(kind, block, lane, codes);
  block += 4 * lane;
  if (kind == PanelCodes::s8) {
    for (int s = 0; s < 8; ++s) store_four(codes + 4 * s, load_four(block + 64 * s));
    return;
  }
  for (int s = 0; s < 8; ++s) {
    uint32_t four = (load_four(block + 64 * (s % 4)) >> (s / 4 * 4)) & 0x0f0f0f0fU;
    if (kind == PanelCodes::u5) {
      four |= ((load_four(block + 256) >> s) & 0x01010101U) << 4;
    } else if (kind == PanelCodes::u6) {
      four |= ((load_four(block + 256 + 64 * (s / 4)) >> (s % 4 * 2)) & 0x03030303U) << 4;
    }
    store_four(codes + 4 * s, four);
  }
}

/// Where the parts of one row's block are in a panel: the block's codes, f16 at d and m, small
/// numbers at small[0], small[1].
struct Places {
  size_t codes = 0;
  size_t d = 0;
  size_t m = 0;
  size_t small[2] = {};
};

Places places_of(const PanelLayout& layout, int64_t block, int64_t lane) {
  const auto kind = static_cast<size_t>(layout.scales);
  const int64_t code_bytes = kBlockCodesBytes[static_cast<size_t>(layout.codes)];
  const int64_t record_bytes = kRecordScalesBytes[kind] + kRecordBlocks[kind] * code_bytes;
  const int64_t record = block / kRecordBlocks[kind] * record_bytes;
  const int64_t within = block % kRecordBlocks[kind];
  const auto at = [](int64_t place) { return static_cast<size_t>(place); };
  Places out;
  out.codes = at(record + kRecordScalesBytes[kind] + within * code_bytes);
  out.d = at(record + 2 * lane);
  out.m = at(record + 32 + 2 * lane);
  switch (layout.scales) {
    case PanelScales::one:
      out.d = at(record + 32 * within + 2 * lane);
      break;
    case PanelScales::with_min:
      break;
    case PanelScales::k_min:
      out.small[0] = at(record + 64 + 32 * within + lane);
      out.small[1] = out.small[0] + 16;
      break;
    case PanelScales::k_signed:
      out.small[0] = at(record + 32 + 32 * within + lane);
      out.small[1] = out.small[0] + 16;
      break;
    case PanelScales::none:
      break;
  }
  return out;
}

bool has_min(PanelScales kind) {
  return kind == PanelScales::with_min || kind == PanelScales::k_min;
}
bool has_small(PanelScales kind) {
  return kind == PanelScales::k_min || kind == PanelScales::k_signed;
}

template <PanelFormat kFormat>
void pack_row(const PanelLayout& layout, const std::byte* row, int64_t cols, int64_t lane,
              uint8_t* panel) {
  for (int64_t i = 0; i < cols / kBlockCols; ++i) {
    const Block32 block = read_block32<kFormat>(row, i);
    const Places places = places_of(layout, i, lane);
    write_codes(layout, block.codes, lane, panel + places.codes);
    std::memcpy(panel + places.d, &block.d, 2);
    if (has_min(layout.scales)) std::memcpy(panel + places.m, &block.m, 2);
    if (has_small(layout.scales)) {
      panel[places.small[0]] = block.small[0];
      panel[places.small[1]] = block.small[1];
    }
  }
}

/// 16-bit floats. In the order of columns value k of lane `lane` is number k * 16 + lane.
void pack_halves(const PanelLayout& layout, const std::byte* row, int64_t cols, int64_t lane,
                 uint8_t* panel) {
  if (layout.order == PanelOrder::tiles) {
    return write_tile_halves(layout.codes, row, cols, lane, panel);
  }
  for (int64_t k = 0; k < cols; ++k) {
    std::memcpy(panel + 2 * (k * kPanelRows + lane), row + 2 * k, 2);
  }
}

void unpack_halves(const PanelLayout& layout, const uint8_t* panel, int64_t cols, int64_t lane,
                   float* out) {
  for (int64_t k = 0; k < cols; ++k) {
    const int64_t at = layout.order == PanelOrder::tiles ? place_of_half(layout.codes, k, lane)
                                                         : k * kPanelRows + lane;
    uint16_t half;
    std::memcpy(&half, panel + 2 * at, 2);
    out[k] = layout.codes == PanelCodes::f16 ? f16_to_f32(half) : bf16_to_f32(half);
  }
}

std::optional<PanelLayout> layout_in_columns(Format format) {
  switch (format) {
    case Format::q4_0:
      return PanelLayout{PanelFormat::q4_0, PanelCodes::u4, PanelScales::one, 8};
    case Format::q4_1:
      return PanelLayout{PanelFormat::q4_1, PanelCodes::u4, PanelScales::with_min, 0};
    case Format::q5_0:
      return PanelLayout{PanelFormat::q5_0, PanelCodes::u5, PanelScales::one, 16};
    case Format::q5_1:
      return PanelLayout{PanelFormat::q5_1, PanelCodes::u5, PanelScales::with_min, 0};
    case Format::q8_0:
      return PanelLayout{PanelFormat::q8_0, PanelCodes::s8, PanelScales::one, 0};
    case Format::q4_k:
      return PanelLayout{PanelFormat::q4_k, PanelCodes::u4, PanelScales::k_min, 0};
    case Format::q5_k:
      return PanelLayout{PanelFormat::q5_k, PanelCodes::u5, PanelScales::k_min, 0};
    case Format::q6_k:
      return PanelLayout{PanelFormat::q6_k, PanelCodes::u6, PanelScales::k_signed, 32};
    case Format::f16:
      return PanelLayout{PanelFormat::f16, PanelCodes::f16, PanelScales::none, 0};
    case Format::bf16:
      return PanelLayout{PanelFormat::bf16, PanelCodes::bf16, PanelScales::none, 0};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<PanelLayout> panel_layout(Format format, PanelOrder order, int64_t cols) {
  auto layout = layout_in_columns(format);
  if (layout && cols % kBlockCols == 0) layout->order = order;
  return layout;
}

size_t panel_bytes(const PanelLayout& layout, int64_t cols) {
  if (layout.scales == PanelScales::none) return static_cast<size_t>(cols * kPanelRows * 2);
  const auto kind = static_cast<size_t>(layout.scales);
  const int64_t num_blocks = cols / kBlockCols;
  const int64_t num_records = ceil_div(num_blocks, kRecordBlocks[kind]);
  return static_cast<size_t>(num_records * kRecordScalesBytes[kind] +
                             num_blocks * kBlockCodesBytes[static_cast<size_t>(layout.codes)]);
}

void pack_panel_row(const PanelLayout& layout, const std::byte* row, int64_t cols, int64_t lane,
                    uint8_t* panel) {
  switch (layout.format) {
    case PanelFormat::q4_0:
      return pack_row<PanelFormat::q4_0>(layout, row, cols, lane, panel);
    case PanelFormat::q4_1:
      return pack_row<PanelFormat::q4_1>(layout, row, cols, lane, panel);
    case PanelFormat::q5_0:
      return pack_row<PanelFormat::q5_0>(layout, row, cols, lane, panel);
    case PanelFormat::q5_1:
      return pack_row<PanelFormat::q5_1>(layout, row, cols, lane, panel);
    case PanelFormat::q8_0:
      return pack_row<PanelFormat::q8_0>(layout, row, cols, lane, panel);
    case PanelFormat::q4_k:
      return pack_row<PanelFormat::q4_k>(layout, row, cols, lane, panel);
    case PanelFormat::q5_k:
      return pack_row<PanelFormat::q5_k>(layout, row, cols, lane, panel);
    case PanelFormat::q6_k:
      return pack_row<PanelFormat::q6_k>(layout, row, cols, lane, panel);
    case PanelFormat::f16:
    case PanelFormat::bf16:
      return pack_halves(layout, row, cols, lane, panel);
  }
}

void unpack_panel_row(const PanelLayout& layout, const uint8_t* panel, int64_t cols, int64_t lane,
                      float* out) {
  if (layout.scales == PanelScales::none) {
    return unpack_halves(layout, panel, cols, lane, out);
  }
  const auto half_at = [&](size_t place) {
    uint16_t half;
    std::memcpy(&half, panel + place, 2);
    return f16_to_f32(half);
  };
  for (int64_t i = 0; i < cols / kBlockCols; ++i) {
    uint8_t q[32];
    const Places places = places_of(layout, i, lane);
    read_codes(layout, panel + places.codes, lane, q);
    const float d = half_at(places.d);
    float scale[2] = {d, d};
    float min = 0.0F;
    if (layout.scales == PanelScales::with_min) {
      min = half_at(places.m);
    } else if (layout.scales == PanelScales::k_min) {
      scale[0] = scale[1] = d * static_cast<float>(panel[places.small[0]]);
      min = -(half_at(places.m) * static_cast<float>(panel[places.small[1]]));
    } else if (layout.scales == PanelScales::k_signed) {
      for (int half = 0; half < 2; ++half) {
        scale[half] = d * static_cast<float>(static_cast<int8_t>(panel[places.small[half]]));
      }
    }
    for (int j = 0; j < 32; ++j) {
      const int code = layout.codes == PanelCodes::s8 ? static_cast<int8_t>(q[j]) : q[j];
      const float product = scale[j / 16] * static_cast<float>(code - layout.code_offset);
      out[i * 32 + j] = has_min(layout.scales) ? product + min : product;
    }
  }
}

}  // namespace headrace
