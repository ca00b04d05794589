// See linear.h.
#include "backend/cpu/linear.h"

#include <algorithm>
#include <array>

#include "backend/cpu/matrix.h"

namespace headrace {
namespace {

void check_task(const Tensor& x, const LinearTask& task) {
  HEADRACE_CHECK(task.weight != nullptr);
  HEADRACE_CHECK_EQ(task.weight->cols(), x.cols);
  HEADRACE_CHECK_EQ(task.out.cols, task.weight->rows());
  HEADRACE_CHECK_EQ(task.out.rows, x.rows);
  if (task.bias.data != nullptr) HEADRACE_CHECK_EQ(task.bias.cols, task.weight->rows());
}

const CpuMatrix& matrix_of(const LinearTask& task) {
  return static_cast<const CpuMatrix&>(*task.weight);
}

/// One call's input in the forms that its weights ask for.
struct Input {
  const Tensor& x;
  /// By form; made where a packed weight asks for it.
  std::array<QuantizedRows, kNumActivationForms> quantized;
};

void quantize(CpuContext& context, Input& input, ActivationForm form) {
  const Tensor& x = input.x;
  QuantizedRows& q = input.quantized[static_cast<size_t>(form)];
  q = context.quantized_rows(form, x.rows, x.cols);
  const FormKernels& kernels = context.kernels.forms[static_cast<size_t>(form)];
  if (form == ActivationForm::bf16) {
    context.for_rows(ceil_div(x.rows, kTileGroupRows), std::min(x.rows, kTileGroupRows) * x.cols,
                     [&](int64_t group) { kernels.tile_rows(x.f32(), x.row_stride, group, q); });
  } else {
    context.for_rows(x.rows, x.cols, [&](int64_t r) { kernels.quantize_row(x.f32(r), r, q); });
  }
}

/// The form in which a matrix takes its input. Formats without panels are decoded as they are used:
/// to tiles where these are the form, but f32 stays what it is.
ActivationForm form_for(const CpuContext& context, const CpuMatrix& matrix) {
  const ActivationForm form = context.form_of(matrix.precision());
  if (matrix.storage() == MatrixStorage::packed) return form;
  const bool tiles = matrix.storage() == MatrixStorage::source && form == ActivationForm::bf16 &&
                     matrix.format() != Format::f32 && matrix.cols() % kTileCols == 0;
  return tiles ? form : ActivationForm::f32;
}

/// One worker's memory. What is there at once: a decoded panel of floats and a row; or what tile
/// kernels need, a decoded panel of bf16 and a row.
struct Scratch {
  float* data = nullptr;  ///< aligned to 64 bytes

  static constexpr auto kTileFloats = kTileScratchBytes / static_cast<int64_t>(sizeof(float));
  static int64_t size(const CpuContext& context, int64_t cols) {
    const bool has_tiles = context.kernels.forms[static_cast<size_t>(ActivationForm::bf16)].panels;
    const int64_t tiles = kTileFloats + kPanelRows * cols / 2 + cols;
    const int64_t floats = (kPanelRows + 1) * cols;
    return (std::max(has_tiles ? tiles : 0, floats) + 15) / 16 * 16;
  }
  float* tiles() const { return data; }
  uint16_t* tile_panel() const { return reinterpret_cast<uint16_t*>(data + kTileFloats); }
  float* tile_row(int64_t cols) const { return data + kTileFloats + kPanelRows * cols / 2; }
};

/// Panels [first, end) of a packed matrix times rows [first_row, end_row).
void run_packed(const CpuContext& context, const Input& input, const LinearTask& task,
                const CpuMatrix::PackedView& view, int64_t first, int64_t end, int64_t first_row,
                int64_t end_row, const Scratch& scratch) {
  const CpuMatrix& matrix = matrix_of(task);
  const auto form = static_cast<size_t>(context.form_of(matrix.precision()));
  const int64_t first_output = first * kPanelRows;
  PanelRun args;
  args.panels = view.panels;
  args.panel_bytes = view.panel_bytes;
  args.scales_bytes = view.scales_bytes;
  args.x = input.quantized[form];
  args.first_row = first_row;
  args.num_rows = end_row - first_row;
  args.num_outputs = std::min(end * kPanelRows, matrix.rows()) - first_output;
  args.bias = task.bias.data != nullptr ? task.bias.f32() + first_output : nullptr;
  args.out = task.out.f32() + first_output;
  args.out_stride = task.out.row_stride;
  args.scratch = scratch.tiles();
  context.kernels.forms[form].panels[static_cast<size_t>(view.format)](args);
}

/// Panels [first, end) of a matrix as in the file times all rows, decoded to tiles.
void run_decoded_tiles(const CpuContext& context, const Input& input, const LinearTask& task,
                       int64_t first, int64_t end, const Scratch& scratch) {
  const int64_t cols = input.x.cols;
  CpuMatrix::PackedView view;
  view.format = PanelFormat::bf16;
  view.panels = reinterpret_cast<const uint8_t*>(scratch.tile_panel());
  for (int64_t panel = first; panel < end; ++panel) {
    matrix_of(task).decode_tiles(panel, scratch.tile_row(cols), scratch.tile_panel());
    for (int64_t row = 0; row < input.x.rows; row += kTileMostRows) {
      run_packed(context, input, task, view, panel, panel + 1, row,
                 std::min(input.x.rows, row + kTileMostRows), scratch);
    }
  }
}

/// Panels [first, end) of a matrix of floats times all rows.
void run_floats(const CpuContext& context, const Input& input, const LinearTask& task,
                int64_t first, int64_t end, const Scratch& scratch) {
  for (int64_t panel = first; panel < end; ++panel) {
    const int64_t first_output = panel * kPanelRows;
    FloatPanel args;
    args.panel = matrix_of(task).float_panel(panel, scratch.data);
    args.x = input.x.f32();
    args.x_stride = input.x.row_stride;
    args.cols = input.x.cols;
    args.num_rows = input.x.rows;
    args.bias = task.bias.data != nullptr ? task.bias.f32() + first_output : nullptr;
    args.out = task.out.f32() + first_output;
    args.out_stride = task.out.row_stride;
    args.num_lanes = std::min(kPanelRows, task.weight->rows() - first_output);
    context.kernels.float_panel(args);
  }
}

/// How the outputs of a group of products are shared out: items are runs of panels, counted through
/// all tasks, times groups of rows.
struct Shares {
  int64_t num_panels = 0;
  int64_t panels_a_share = 0;
  int64_t num_shares = 0;
  int64_t rows_a_group = 0;
  int64_t num_groups = 0;
};

/// Panels a share where there are few rows and each item costs something to begin: about `items`
/// items a thread, as many for each thread as the number of panels allows.
int64_t even_share(int64_t num_panels, int num_threads, int64_t most_items) {
  int64_t best = num_panels;
  int64_t best_waste = INT64_MAX;
  for (int64_t items = most_items; items >= 1; --items) {
    const int64_t share = ceil_div(num_panels, items * num_threads);
    const int64_t rounds = ceil_div(ceil_div(num_panels, share), num_threads);
    const int64_t waste = rounds * num_threads * share - num_panels;
    if (waste < best_waste) {
      best = share;
      best_waste = waste;
    }
  }
  return best;
}

Shares share_out(int64_t num_panels, int64_t num_rows, int64_t cols, int num_threads,
                 bool has_tiles) {
  // Quantised rows of a group stay in a second-level cache while weights pass by.
  constexpr int64_t kGroupBytes = 256 << 10;
  // Kernels take panels two at a time and rows in tiles.
  constexpr int64_t kPanelStep = 2;
  constexpr int64_t kRowStep = 32;
  static_assert(kRowStep % kTileRows == 0);
  // Enough items that a thread which is held up does not hold up the others for long.
  constexpr int64_t kItemsAThread = 8;
  Shares shares;
  shares.num_panels = num_panels;
  shares.rows_a_group = std::max<int64_t>(1, kGroupBytes / cols / kRowStep) * kRowStep;
  shares.rows_a_group = std::min(shares.rows_a_group, kTileMostRows);
  shares.num_groups = ceil_div(num_rows, shares.rows_a_group);
  const int64_t panels = num_panels * shares.num_groups / (kItemsAThread * num_threads);
  shares.panels_a_share = std::max<int64_t>(1, panels / kPanelStep) * kPanelStep;
  // Setting up the tiles takes about as long as a few hundred weights.
  constexpr int64_t kTileItemsAThread = 6;
  if (has_tiles && num_rows <= 2 * kTileGroupRows) {
    shares.panels_a_share = even_share(num_panels, num_threads, kTileItemsAThread);
  }
  shares.num_shares = ceil_div(num_panels, shares.panels_a_share);
  return shares;
}

}  // namespace

void cpu_linear(CpuContext& context, const Tensor& x, std::span<const LinearTask> tasks) {
  if (x.rows == 0) return;
  Input input{x, {}};
  std::array<bool, kNumActivationForms> is_needed = {};
  int64_t num_panels = 0;
  for (const LinearTask& task : tasks) {
    check_task(x, task);
    const CpuMatrix& matrix = matrix_of(task);
    num_panels += matrix.num_panels();
    is_needed[static_cast<size_t>(form_for(context, matrix))] = true;
  }
  for (size_t form = 1; form < is_needed.size(); ++form) {
    if (is_needed[form]) quantize(context, input, static_cast<ActivationForm>(form));
  }
  const int num_threads = context.pool.num_threads();
  const Shares shares = share_out(num_panels, x.rows, x.cols, num_threads,
                                  is_needed[static_cast<size_t>(ActivationForm::bf16)]);
  constexpr int64_t kAlignment = 16;  // floats
  const int64_t scratch_size = Scratch::size(context, x.cols);
  float* all_scratch =
      align_up(context.scratch(static_cast<size_t>(scratch_size * num_threads + kAlignment)), 64);
  const auto run_item = [&](int64_t item, int worker) {
    const int64_t group = item / shares.num_shares;
    const int64_t first_row = group * shares.rows_a_group;
    const int64_t end_row = std::min(x.rows, first_row + shares.rows_a_group);
    const Scratch scratch{all_scratch + worker * scratch_size};
    int64_t first = item % shares.num_shares * shares.panels_a_share;
    int64_t end = std::min(num_panels, first + shares.panels_a_share);
    // The tasks whose panels are among them.
    for (const LinearTask& task : tasks) {
      const CpuMatrix& matrix = matrix_of(task);
      const int64_t task_end = std::min(end, matrix.num_panels());
      if (first < task_end) {
        if (matrix.storage() == MatrixStorage::packed) {
          run_packed(context, input, task, matrix.packed_panels(first), first, task_end, first_row,
                     end_row, scratch);
        } else if (group == 0) {  // decoded once for all rows
          const bool tiles = form_for(context, matrix) == ActivationForm::bf16;
          (tiles ? run_decoded_tiles : run_floats)(context, input, task, first, task_end, scratch);
        }
      }
      first = std::max<int64_t>(0, first - matrix.num_panels());
      end -= matrix.num_panels();
      if (end <= 0) break;
    }
  };
  context.pool.parallel_for(shares.num_groups * shares.num_shares, run_item);
}

}  // namespace headrace
