// The reference decode of every format, in the order of formats.def.
#pragma once

#include <span>

#include "quant/format.h"

namespace headrace {

/// One decoder a format, indexed by Format.
std::span<const DecodeBlocks> reference_decoders();

}  // namespace headrace
