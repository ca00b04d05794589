// See tile_codes.h.
#include "backend/cpu/tile_codes.h"

#include <cstring>

#include "backend/cpu/kernels/kernel_table.h"

namespace headrace {
namespace {

constexpr int kColumns = 32;

/// Where column j of a row stands when evens come first.
constexpr int evens_first(int j) {
  return j / 2 + j % 2 * (kColumns / 2);
}

uint64_t load_word(const uint8_t* x) {
  uint64_t v;
  std::memcpy(&v, x, sizeof(v));
  return v;
}

void add_bits(uint8_t* x, uint64_t bits) {
  const uint64_t v = load_word(x) | bits;
  std::memcpy(x, &v, sizeof(v));
}

/// Bit 4 of a code of 5 bits becomes its lowest.
constexpr uint8_t rotate_up(uint8_t code) {
  return static_cast<uint8_t>((code & 0x0f) << 1 | code >> 4);
}
constexpr uint8_t rotate_down(uint8_t code) {
  return static_cast<uint8_t>(code >> 1 | (code & 1) << 4);
}

/// The last row of u5 is spread over the vectors.
constexpr int64_t kSpreadLane = 15;

/// Of u6: which byte and bit of a block the parts of a code have.
struct PlaceU6 {
  size_t low;
  int low_shift;
  size_t high;
  int high_shift;
};

PlaceU6 place_u6(int64_t lane, int j) {
  const auto pair = static_cast<size_t>(lane / 2);
  const auto byte = static_cast<size_t>(32 * (lane % 2) + evens_first(j));
  return {64 * (pair / 2) + byte, static_cast<int>(pair % 2 * 4), 256 + 64 * (pair / 4) + byte,
          static_cast<int>(pair % 4 * 2)};
}

}  // namespace

void write_tile_codes(PanelCodes kind, const uint8_t* codes, int64_t lane, uint8_t* block) {
  if (kind == PanelCodes::s8) {
    for (int j = 0; j < kColumns; ++j) block[32 * lane + evens_first(j)] = codes[j];
  } else if (kind == PanelCodes::u4) {
    for (int g = 0; g < 8; ++g) {
      const uint8_t* four = codes + 4 * g;
      const auto bits =
          static_cast<uint16_t>(four[0] | four[1] << 4 | four[2] << 8 | four[3] << 12);
      std::memcpy(block + 64 * (lane / 4) + 8 * g + 2 * (lane % 4), &bits, sizeof(bits));
    }
  } else if (kind == PanelCodes::u5) {
    for (int g = 0; g < 8; ++g) {
      uint64_t field = 0;
      for (int t = 3; t >= 0; --t) field = field << 5 | rotate_up(codes[4 * g + t]);
      if (lane != kSpreadLane) {
        add_bits(block + 64 * (lane / 3) + 8 * g, field << (20 * (lane % 3)));
        continue;
      }
      for (int bit = 0; bit < 5; ++bit) {
        uint64_t four = 0;
        for (int t = 0; t < 4; ++t) four |= (field >> (5 * t + bit) & 1) << t;
        add_bits(block + 64 * bit + 8 * g, four << 60);
      }
    }
  } else {
    for (int j = 0; j < kColumns; ++j) {
      const PlaceU6 place = place_u6(lane, j);
      block[place.low] |= static_cast<uint8_t>((codes[j] & 0x0f) << place.low_shift);
      block[place.high] |= static_cast<uint8_t>(codes[j] >> 4 << place.high_shift);
    }
  }
}

void read_tile_codes(PanelCodes kind, const uint8_t* block, int64_t lane, uint8_t* codes) {
  if (kind == PanelCodes::s8) {
    for (int j = 0; j < kColumns; ++j) codes[j] = block[32 * lane + evens_first(j)];
  } else if (kind == PanelCodes::u4) {
    for (int g = 0; g < 8; ++g) {
      uint16_t bits;
      std::memcpy(&bits, block + 64 * (lane / 4) + 8 * g + 2 * (lane % 4), sizeof(bits));
      for (int t = 0; t < 4; ++t) codes[4 * g + t] = bits >> (4 * t) & 0x0f;
    }
  } else if (kind == PanelCodes::u5) {
    for (int g = 0; g < 8; ++g) {
      for (int t = 0; t < 4; ++t) {
        uint8_t code = 0;
        if (lane != kSpreadLane) {
          const uint64_t word = load_word(block + 64 * (lane / 3) + 8 * g);
          code = word >> (20 * (lane % 3) + 5 * t) & 0x1f;
        } else {
          for (int bit = 0; bit < 5; ++bit) {
            const uint64_t word = load_word(block + 64 * bit + 8 * g);
            code = static_cast<uint8_t>(code | (word >> (60 + t) & 1) << bit);
          }
        }
        codes[4 * g + t] = rotate_down(code);
      }
    }
  } else {
    for (int j = 0; j < kColumns; ++j) {
      const PlaceU6 place = place_u6(lane, j);
      const int low = block[place.low] >> place.low_shift & 0x0f;
      const int high = block[place.high] >> place.high_shift & 3;
      codes[j] = static_cast<uint8_t>(low | high << 4);
    }
  }
}

int64_t place_of_half(PanelCodes kind, int64_t column, int64_t lane) {
  const int64_t block = column / kColumns;
  const auto j = static_cast<int>(column % kColumns);
  const int at = kind == PanelCodes::f16 ? evens_first(j) : j;
  return (block * kPanelRows + lane) * kColumns + at;
}

void write_tile_halves(PanelCodes kind, const std::byte* row, int64_t cols, int64_t lane,
                       uint8_t* panel) {
  for (int64_t k = 0; k < cols; ++k) {
    std::memcpy(panel + 2 * place_of_half(kind, k, lane), row + 2 * k, 2);
  }
}

}  // namespace headrace
