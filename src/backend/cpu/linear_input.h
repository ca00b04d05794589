// The input of a group of products: rows that are made on the way, in the forms that the group's
// matrices multiply.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/context.h"
#include "backend/cpu/linear_group.h"

namespace headrace {

/// Memory for these forms of inputs of up to that many rows and columns.
void reserve_input(CpuContext& context, const InputForms& forms, int64_t max_rows,
                   int64_t max_cols);

/// Makes LinearGroup::prepared of each group in the forms that it asks for, in the context's
/// memory: until the next call.
void prepare_inputs(CpuContext& context, std::span<LinearGroup> groups);

/// The same for an input alone.
PreparedInput prepare_input(CpuContext& context, const LinearInput& x, const InputForms& forms);

}  // namespace headrace
