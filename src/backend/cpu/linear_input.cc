// See linear_input.h.
#include "backend/cpu/linear_input.h"

#include <algorithm>

namespace headrace {
namespace {

/// Rows of a group, each where it lies or made when it is asked for.
class InputRows {
 public:
  InputRows(const KernelTable& kernels, const LinearGroup& group)
      : kernels_(kernels), input_(group.input), rows_(group.rows) {}

  bool are_made() const {
    return input_.norm.data != nullptr || input_.up.data != nullptr || input_.activates;
  }
  /// Whether the rows lie one after the other as they are multiplied.
  bool lie_in_order() const { return !are_made() && rows_.empty(); }

  /// out: [cols].
  void make(int64_t index, float* out) const {
    const Tensor& x = input_.x;
    const int64_t row = source(index);
    if (!are_made()) {
      std::copy_n(x.f32(row), x.cols, out);
    } else if (input_.norm.data == nullptr) {
      const float* up = input_.up.data != nullptr ? input_.up.f32(row) : nullptr;
      kernels_.activate(input_.activation, x.f32(row), up, x.cols, out);
    } else if (input_.centers) {
      const float* bias = input_.norm_bias.data != nullptr ? input_.norm_bias.f32() : nullptr;
      kernels_.layer_norm(x.f32(row), input_.norm.f32(), bias, x.cols, input_.norm_eps, out);
    } else {
      kernels_.rms_norm(x.f32(row), input_.norm.f32(), x.cols, input_.norm_eps, out);
    }
  }

  /// A row where it lies, or made in `scratch`.
  const float* at(int64_t index, float* scratch) const {
    if (!are_made()) return input_.x.f32(source(index));
    make(index, scratch);
    return scratch;
  }

 private:
  int64_t source(int64_t index) const {
    return rows_.empty() ? index : rows_[static_cast<size_t>(index)];
  }

  const KernelTable& kernels_;
  const LinearInput& input_;
  std::span<const int32_t> rows_;
};

/// Rows that one thread makes together, since they share lines of memory.
int64_t chunk_rows(const InputForms& forms) {
  if (forms.tiles) return kTileGroupRows;
  return forms.integers ? kTileRows : 1;
}

int64_t num_chunks(const KernelTable& kernels, const LinearGroup& group) {
  const InputForms& forms = group.forms;
  const bool is_there = !forms.integers && !forms.tiles && InputRows(kernels, group).lie_in_order();
  if (group.has_rows_of_last || is_there) return 0;
  return ceil_div(group.num_rows(), chunk_rows(forms));
}

/// scratch: [chunk rows, cols].
void make_chunk(const KernelTable& kernels, const LinearGroup& group, int64_t chunk,
                float* scratch) {
  const InputRows rows(kernels, group);
  const int64_t first = chunk * chunk_rows(group.forms);
  const int64_t end = std::min(group.num_rows(), first + chunk_rows(group.forms));
  const int64_t cols = group.cols();
  if (group.forms.floats && !rows.lie_in_order()) {
    for (int64_t row = first; row < end; ++row) rows.make(row, group.prepared.floats.f32(row));
  }
  if (group.forms.integers) {
    for (int64_t row = first; row < end; ++row) {
      kernels.quantize_row(rows.at(row, scratch), row, group.prepared.integers);
    }
  }
  if (!group.forms.tiles) return;
  const float* values = scratch;
  int64_t stride = cols;
  if (rows.lie_in_order()) {
    values = group.input.x.f32(first);
    stride = group.input.x.row_stride;
  } else {
    for (int64_t row = first; row < end; ++row) rows.make(row, scratch + (row - first) * cols);
  }
  kernels.tile_rows(values, stride, first / kTileGroupRows, group.prepared.tiles);
}

/// Rows of a group within the memory of all.
QuantizedRows slice(const QuantizedRows& all, bool is_wide, int64_t first_element, int64_t num_rows,
                    int64_t cols) {
  const int64_t block = first_element / kBlockCols;
  QuantizedRows out = all;
  out.high += first_element;
  out.low += first_element;
  if (out.whole != nullptr) out.whole += first_element;
  out.has_low += is_wide ? kWideSteps * block : block;
  out.wide += kWideSteps * kStepCols * block;
  out.wide_steps += is_wide ? kWideSteps * block : block;
  out.scale += block;
  out.scaled_sum += block;
  out.negated_sums += 3 * block;
  out.cols = cols;
  out.num_rows = num_rows;
  return out;
}

/// Elements that a group's rows of tiles take.
int64_t tile_elements(int64_t num_rows, int64_t cols) {
  // One row has no group; see TileRows.
  return cols * (num_rows == 1 ? 1 : ceil_div(num_rows, kTileGroupRows) * kTileGroupRows);
}

/// Numbers of elements of all groups in each form.
struct FormSizes {
  int64_t floats = 0;
  int64_t integers = 0;
  int64_t tiles = 0;
};

FormSizes size_of(const KernelTable& kernels, const LinearGroup& group) {
  FormSizes size;
  if (group.has_rows_of_last) return size;
  const int64_t elements = group.num_rows() * group.cols();
  if (group.forms.floats && !InputRows(kernels, group).lie_in_order()) size.floats = elements;
  if (group.forms.integers) size.integers = elements;
  if (group.forms.tiles) size.tiles = tile_elements(group.num_rows(), group.cols());
  return size;
}

/// Gives each group its part of the context's memory.
void place(CpuContext& context, std::span<LinearGroup> groups) {
  FormSizes sum;
  for (const LinearGroup& group : groups) {
    const FormSizes size = size_of(context.kernels, group);
    sum.floats += size.floats;
    sum.integers += size.integers;
    sum.tiles += size.tiles;
  }
  float* floats = sum.floats > 0 ? context.float_rows(1, sum.floats).f32() : nullptr;
  QuantizedRows integers;
  if (sum.integers > 0) integers = context.quantized_rows(sum.integers / kBlockCols, kBlockCols);
  uint16_t* tiles =
      sum.tiles > 0 ? context.tile_rows(sum.tiles / kTileCols, kTileCols).tiles : nullptr;
  FormSizes at;
  for (size_t i = 0; i < groups.size(); ++i) {
    LinearGroup& group = groups[i];
    if (group.has_rows_of_last) {
      group.prepared = groups[i - 1].prepared;
      continue;
    }
    const FormSizes size = size_of(context.kernels, group);
    const int64_t rows = group.num_rows();
    const int64_t cols = group.cols();
    group.prepared.floats = group.input.x;
    if (size.floats > 0) group.prepared.floats = {floats + at.floats, DType::f32, rows, cols, cols};
    if (size.integers > 0) {
      group.prepared.integers =
          slice(integers, context.kernels.has_wide_steps, at.integers, rows, cols);
      group.prepared.integers.has_whole =
          context.kernels.needs_whole && group.forms.signed_codes && rows > kTileRows;
    }
    if (size.tiles > 0) group.prepared.tiles = {tiles + at.tiles, cols, rows};
    at.floats += size.floats;
    at.integers += size.integers;
    at.tiles += size.tiles;
  }
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

void prepare_inputs(CpuContext& context, std::span<LinearGroup> groups) {
  // Who has the rows of another group makes them in that one's place.
  for (size_t i = groups.size(); i-- > 1;) {
    if (groups[i].has_rows_of_last) groups[i - 1].forms.add(groups[i].forms);
  }
  place(context, groups);
  int64_t chunks = 0;
  int64_t elements = 0;
  int64_t scratch_size = 0;
  for (const LinearGroup& group : groups) {
    chunks += num_chunks(context.kernels, group);
    if (!group.has_rows_of_last) elements += group.num_rows() * group.cols();
    const int64_t rows =
        group.forms.tiles ? std::min(group.num_rows(), kTileGroupRows) : int64_t{1};
    scratch_size = std::max(scratch_size, in_lines(rows * group.cols()));
  }
  if (chunks == 0) return;
  float* scratch = context.scratch(static_cast<size_t>(scratch_size * context.pool.num_threads()));
  context.for_rows_on_threads(chunks, elements / chunks, [&](int64_t chunk, int thread) {
    const LinearGroup* group = groups.data();
    for (int64_t own; chunk >= (own = num_chunks(context.kernels, *group)); ++group) chunk -= own;
    make_chunk(context.kernels, *group, chunk, scratch + thread * scratch_size);
  });
}

PreparedInput prepare_input(CpuContext& context, const LinearInput& input,
                            const InputForms& forms) {
  LinearGroup group;
  group.input = input;
  group.forms = forms;
  prepare_inputs(context, std::span(&group, 1));
  return group.prepared;
}

}  // namespace headrace
