// Which kernel table an instruction set uses on this machine.
#pragma once

#include <vector>

#include "backend/cpu/kernels/kernel_table.h"
#include "base/cpu_features.h"

namespace headrace {

/// The tables of `isa` that this machine can run, best first. The reference kernels exist in three
/// widths with bit-identical results.
std::vector<const KernelTable*> kernel_tables(Isa isa);

/// The best of them; `isa` must be one of available_isas().
const KernelTable& kernel_table(Isa isa);

}  // namespace headrace
