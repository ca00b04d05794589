// The codes of 32 columns of one row in the order of tiles (kernels/tile_layout.h): writing and
// reading them. Must not know formats or scales.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/panel_layout.h"

namespace headrace {

/// Writes the 32 codes of row `lane` into a zeroed record. u4, u5, u6 and s8.
void write_tile_codes(PanelCodes kind, const uint8_t* codes, int64_t lane, uint8_t* record);
void read_tile_codes(PanelCodes kind, const uint8_t* record, int64_t lane, uint8_t* codes);

/// The same for f16 and bf16, whose codes are numbers of 16 bits.
void write_tile_halves(PanelCodes kind, const uint16_t* values, int64_t lane, uint8_t* record);
void read_tile_halves(PanelCodes kind, const uint8_t* record, int64_t lane, uint16_t* values);

}  // namespace headrace
