// Packing of integer formats into panels and back, see kernels/panel_layout.h. Plain C++, the same
// for every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/cpu/kernels/panel_layout.h"
#include "quant/format.h"

namespace headrace {

/// How a format is packed. Floats: code_offset is 0.
struct PanelLayout {
  PanelFormat format;
  PanelCodes codes;
  PanelScales scales;
  int code_offset;  ///< weight 0 has this code (with_min, k_min: 0)
  PanelOrder order = PanelOrder::columns;
};

/// Nothing for formats that are kept as in the file. In the order of tiles cols has to be a
/// multiple of 32: matrices that have other columns, of f16 or bf16, get the other order.
std::optional<PanelLayout> panel_layout(Format format, PanelOrder order, int64_t cols);

/// A multiple of 64.
size_t panel_bytes(const PanelLayout& layout, int64_t cols);

/// Writes one row of the file (cols weights) into lane `lane` of a zeroed panel.
void pack_panel_row(const PanelLayout& layout, const std::byte* row, int64_t cols, int64_t lane,
                    uint8_t* panel);

/// Reads it back: the floats of the format's reference decode, bit for bit.
void unpack_panel_row(const PanelLayout& layout, const uint8_t* panel, int64_t cols, int64_t lane,
                      float* out);

}  // namespace headrace
