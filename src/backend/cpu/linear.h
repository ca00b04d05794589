// Products of activations with weight matrices, shared out over panels of output rows.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cpu/context.h"

namespace headrace {

/// Backend::linear. What the products read is made while it is brought to the form they multiply,
/// and what they are added to is added to by the thread that computed them.
void cpu_linear(CpuContext& context, const LinearInput& input, std::span<const LinearTask> tasks);

}  // namespace headrace
