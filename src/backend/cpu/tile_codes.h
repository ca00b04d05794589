// The codes of one row in the order of tiles (kernels/tile_layout.h): writing and reading them.
// Must not know formats or scales.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/panel_layout.h"

namespace headrace {

/// Writes 32 codes of row `lane` into a zeroed block. u4, u5, u6 and s8.
void write_tile_codes(PanelCodes kind, const uint8_t* codes, int64_t lane, uint8_t* block);
void read_tile_codes(PanelCodes kind, const uint8_t* block, int64_t lane, uint8_t* codes);

/// Panels of f16 and bf16: which 16-bit number of a panel is that of a row and column.
int64_t place_of_half(PanelCodes kind, int64_t column, int64_t lane);

/// Writes a row of cols such numbers.
void write_tile_halves(PanelCodes kind, const std::byte* row, int64_t cols, int64_t lane,
                       uint8_t* panel);

}  // namespace headrace
