// The input of a group of products, in the forms that their matrices multiply.
#pragma once

#include "backend/cpu/context.h"
#include "backend/cpu/matrix.h"
#include "tensor/tensor.h"

namespace headrace {

/// Which forms a group needs.
struct InputForms {
  bool integers = false;
  bool tiles = false;

  void add(InputForm form) {
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

/// Makes the forms, in the context's memory: until the next call.
PreparedInput prepare_input(CpuContext& context, const Tensor& x, const InputForms& forms);

}  // namespace headrace
