// See linear_input.h.
#include "backend/cpu/linear_input.h"

#include <algorithm>

namespace headrace {
namespace {

/// Rows of an input, each where it lies or made when it is asked for.
class InputRows {
 public:
  InputRows(const KernelTable& kernels, const LinearInput& input)
      : kernels_(kernels), input_(input) {}

  bool are_made() const {
    return input_.norm.data != nullptr || input_.up.data != nullptr || input_.activates;
  }

  /// out: [cols].
  void make(int64_t row, float* out) const {
    const Tensor& x = input_.x;
    if (input_.norm.data == nullptr) {
      const float* up = input_.up.data != nullptr ? input_.up.f32(row) : nullptr;
      kernels_.activate(input_.activation, x.f32(row), up, x.cols, out);
    } else if (input_.centers) {
      const float* bias = input_.norm_bias.data != nullptr ? input_.norm_bias.f32() : nullptr;
      kernels_.layer_norm(x.f32(row), input_.norm.f32(), bias, x.cols, input_.norm_eps, out);
    } else {
      kernels_.rms_norm(x.f32(row), input_.norm.f32(), x.cols, input_.norm_eps, out);
    }
  }

 private:
  const KernelTable& kernels_;
  const LinearInput& input_;
};

void make_integers(CpuContext& context, const LinearInput& input, const InputRows& rows,
                   const QuantizedRows& out) {
  const Tensor& x = input.x;
  const int64_t scratch_size = in_lines(x.cols);
  float* scratch =
      rows.are_made()
          ? context.scratch(static_cast<size_t>(scratch_size * context.pool.num_threads()))
          : nullptr;
  // Whole tiles: rows of a tile share lines of memory.
  context.for_rows_on_threads(ceil_div(x.rows, kTileRows), kTileRows * x.cols,
                              [&](int64_t tile, int thread) {
                                const int64_t end = std::min(x.rows, (tile + 1) * kTileRows);
                                for (int64_t row = tile * kTileRows; row < end; ++row) {
                                  const float* values = x.f32(row);
                                  if (rows.are_made()) {
                                    float* made = scratch + thread * scratch_size;
                                    rows.make(row, made);
                                    values = made;
                                  }
                                  context.kernels.quantize_row(values, row, out);
                                }
                              });
}

void make_tiles(CpuContext& context, const LinearInput& input, const InputRows& rows,
                const TileRows& out) {
  const Tensor& x = input.x;
  const int64_t group_rows = std::min(x.rows, kTileGroupRows);
  const int64_t scratch_size = in_lines(group_rows * x.cols);
  float* scratch =
      rows.are_made()
          ? context.scratch(static_cast<size_t>(scratch_size * context.pool.num_threads()))
          : nullptr;
  context.for_rows_on_threads(ceil_div(x.rows, kTileGroupRows), group_rows * x.cols,
                              [&](int64_t group, int thread) {
                                const int64_t first = group * kTileGroupRows;
                                const float* values = x.f32(first);
                                int64_t stride = x.row_stride;
                                if (rows.are_made()) {
                                  float* made = scratch + thread * scratch_size;
                                  const int64_t end = std::min(x.rows, first + kTileGroupRows);
                                  for (int64_t row = first; row < end; ++row)
                                    rows.make(row, made + (row - first) * x.cols);
                                  values = made;
                                  stride = x.cols;
                                }
                                context.kernels.tile_rows(values, stride, group, out);
                              });
}

}  // namespace

void reserve_input(CpuContext& context, const InputForms& forms, int64_t max_rows,
                   int64_t max_cols) {
  const int64_t scratch_rows = forms.tiles ? kTileGroupRows : 1;
  context.scratch(
      static_cast<size_t>(in_lines(scratch_rows * max_cols) * context.pool.num_threads()));
  if (forms.floats) context.float_rows(max_rows, max_cols);
  if (forms.integers) context.quantized_rows(max_rows, max_cols);
  if (forms.tiles) context.tile_rows(max_rows, max_cols);
}

PreparedInput prepare_input(CpuContext& context, const LinearInput& input,
                            const InputForms& forms) {
  const Tensor& x = input.x;
  const InputRows rows(context.kernels, input);
  PreparedInput out;
  out.floats = x;
  if (forms.floats && rows.are_made()) {
    out.floats = context.float_rows(x.rows, x.cols);
    context.for_rows(x.rows, 2 * x.cols, [&](int64_t row) { rows.make(row, out.floats.f32(row)); });
  }
  if (forms.integers) {
    out.integers = context.quantized_rows(x.rows, x.cols);
    make_integers(context, input, rows, out.integers);
  }
  if (forms.tiles) {
    out.tiles = context.tile_rows(x.rows, x.cols);
    make_tiles(context, input, rows, out.tiles);
  }
  return out;
}

}  // namespace headrace
