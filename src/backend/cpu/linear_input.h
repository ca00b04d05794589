// The input of a group of products: rows that are made on the way, in the forms that the group's
// matrices multiply.
#pragma once

#include "backend/backend.h"
#include "backend/cpu/context.h"
#include "backend/cpu/matrix.h"

namespace headrace {

/// Which forms a group needs.
struct InputForms {
  bool floats = false;
  bool integers = false;
  bool tiles = false;

  void add(InputForm form) {
    floats |= form == InputForm::floats;
    integers |= form == InputForm::integers;
    tiles |= form == InputForm::tiles;
  }
};

/// Rows of activations, [rows, cols]; forms that were not asked for are empty.
struct PreparedInput {
  Tensor floats;
  QuantizedRows integers;
  TileRows tiles;
};

/// Memory for these forms of inputs of up to that many rows and columns.
void reserve_input(CpuContext& context, const InputForms& forms, int64_t max_rows,
                   int64_t max_cols);

/// Makes the forms, in the context's memory: until the next call.
PreparedInput prepare_input(CpuContext& context, const LinearInput& x, const InputForms& forms);

}  // namespace headrace
