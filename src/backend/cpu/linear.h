// Products of activations with weight matrices, shared out over panels of output rows.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cpu/context.h"
#include "backend/cpu/linear_input.h"

namespace headrace {

/// Memory for cpu_linear with inputs of up to that many rows and columns, in these forms.
void reserve_linear(CpuContext& context, const InputForms& forms, int64_t max_rows,
                    int64_t max_cols);

/// Backend::linear. What the products read is made while it is brought to the form they multiply,
/// and what they are added to is added to by the thread that computed them.
void cpu_linear(CpuContext& context, const LinearInput& input, std::span<const LinearTask> tasks);

/// The same for several groups of rows, each with its products, in one parallel region.
void cpu_linear_groups(CpuContext& context, std::span<LinearGroup> groups);

}  // namespace headrace
