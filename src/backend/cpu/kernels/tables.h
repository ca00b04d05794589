// Which kernel table an instruction set uses on this machine.
#pragma once

#include "backend/cpu/kernels/kernel_table.h"
#include "base/cpu_features.h"

namespace headrace {

/// The table of `isa`, which must be one of available_isas(). The reference kernels exist in three
/// widths with bit-identical results; this machine's widest is taken.
const KernelTable& kernel_table(Isa isa);

}  // namespace headrace
