// See linear_input.h.
#include "backend/cpu/linear_input.h"

#include <algorithm>

namespace headrace {

PreparedInput prepare_input(CpuContext& context, const Tensor& x, const InputForms& forms) {
  PreparedInput input;
  input.floats = x;
  if (forms.integers) {
    input.integers = context.quantized_rows(x.rows, x.cols);
    context.for_rows(x.rows, x.cols,
                     [&](int64_t r) { context.kernels.quantize_row(x.f32(r), r, input.integers); });
  }
  if (forms.tiles) {
    input.tiles = context.tile_rows(x.rows, x.cols);
    context.for_rows(ceil_div(x.rows, kTileGroupRows), std::min(x.rows, kTileGroupRows) * x.cols,
                     [&](int64_t group) {
                       context.kernels.tile_rows(x.f32(), x.row_stride, group, input.tiles);
                     });
  }
  return input;
}

}  // namespace headrace
