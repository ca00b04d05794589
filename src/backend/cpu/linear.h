// Products of activations with weight matrices, shared out over panels of output rows.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cpu/context.h"

namespace headrace {

/// out = x W^T (+ bias) for each task. x: [rows, cols of every weight].
void cpu_linear(CpuContext& context, const Tensor& x, std::span<const LinearTask> tasks);

}  // namespace headrace
