// See linear.h.
#include "backend/cpu/linear.h"

#include <algorithm>

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

/// Whether the product is one of floats.
bool is_float(const CpuMatrix& matrix) {
  const auto format = matrix.panel_format();
  return !format || *format == PanelFormat::f16 || *format == PanelFormat::bf16;
}

/// One call's input, and as integers where a packed weight asks for it.
struct Input {
  const Tensor& x;
  QuantizedRows quantized;
};

void quantize(CpuContext& context, Input& input) {
  const Tensor& x = input.x;
  input.quantized = context.quantized_rows(x.rows, x.cols);
  context.for_rows(x.rows, x.cols,
                   [&](int64_t r) { context.kernels.quantize_row(x.f32(r), r, input.quantized); });
}

/// Panels [first, end) of a matrix of integers times rows [first_row, end_row).
void run_integers(const CpuContext& context, const Input& input, const LinearTask& task,
                  const CpuMatrix::Panels& view, int64_t first, int64_t end, int64_t first_row,
                  int64_t end_row) {
  const CpuMatrix& matrix = matrix_of(task);
  const int64_t first_output = first * kPanelRows;
  PanelRun args;
  args.panels = reinterpret_cast<const uint8_t*>(view.data);
  args.panel_bytes = view.panel_bytes;
  args.x = input.quantized;
  args.first_row = first_row;
  args.num_rows = end_row - first_row;
  args.num_outputs = std::min(end * kPanelRows, matrix.rows()) - first_output;
  args.bias = task.bias.data != nullptr ? task.bias.f32() + first_output : nullptr;
  args.out = task.out.f32() + first_output;
  args.out_stride = task.out.row_stride;
  context.kernels.int_panels[static_cast<size_t>(*matrix.panel_format())](args);
}

/// Panels [first, end) of a matrix of floats times rows [first_row, end_row).
void run_floats(const CpuContext& context, const Input& input, const LinearTask& task,
                const CpuMatrix::Panels& view, int64_t first, int64_t end, int64_t first_row,
                int64_t end_row) {
  const CpuMatrix& matrix = matrix_of(task);
  const int64_t first_output = first * kPanelRows;
  FloatRun args;
  args.panels = view.data;
  args.x = input.x.f32(first_row);
  args.x_stride = input.x.row_stride;
  args.cols = input.x.cols;
  args.num_rows = end_row - first_row;
  args.num_outputs = std::min(end * kPanelRows, matrix.rows()) - first_output;
  args.bias = task.bias.data != nullptr ? task.bias.f32() + first_output : nullptr;
  args.out = task.out.f32(first_row) + first_output;
  args.out_stride = task.out.row_stride;
  const auto format = matrix.panel_format();
  (!format                       ? context.kernels.f32_panels
   : *format == PanelFormat::f16 ? context.kernels.f16_panels
                                 : context.kernels.bf16_panels)(args);
}

/// Panels [first, end) of a matrix times rows [first_row, end_row); scratch: where they are made.
void run_panels(const CpuContext& context, const Input& input, const LinearTask& task,
                int64_t first, int64_t end, int64_t first_row, int64_t end_row,
                std::byte* scratch) {
  const CpuMatrix& matrix = matrix_of(task);
  const int64_t step = matrix.makes_panels() ? CpuMatrix::kMadePanels : end - first;
  const auto run = is_float(matrix) ? run_floats : run_integers;
  for (; first < end; first += step) {
    const int64_t step_end = std::min(end, first + step);
    run(context, input, task, matrix.panels(first, step_end - first, scratch), first, step_end,
        first_row, end_row);
  }
}

/// How the outputs of a group of products are shared out: items are runs of panels, counted through
/// all tasks, times groups of rows.
struct Shares {
  int64_t panels_a_share = 0;
  int64_t num_shares = 0;
  int64_t rows_a_group = 0;
  int64_t num_groups = 0;
};

Shares share_out(int64_t num_panels, int64_t num_rows, int64_t cols, int num_threads,
                 bool in_one_group) {
  // Quantised rows of a group stay in a second-level cache while weights pass by.
  constexpr int64_t kGroupBytes = 256 << 10;
  // Kernels take panels two at a time and rows in tiles.
  constexpr int64_t kPanelStep = 2;
  constexpr int64_t kRowStep = 32;
  static_assert(kRowStep % kTileRows == 0);
  // Enough items that a thread which is held up does not hold up the others for long, and small
  // ones where a few rows pass by the weights in microseconds.
  const int64_t items_a_thread = num_rows < kRowStep ? 64 : 8;
  Shares shares;
  shares.rows_a_group = std::max<int64_t>(1, kGroupBytes / cols / kRowStep) * kRowStep;
  if (in_one_group) shares.rows_a_group = num_rows;
  shares.num_groups = ceil_div(num_rows, shares.rows_a_group);
  const int64_t panels = num_panels * shares.num_groups / (items_a_thread * num_threads);
  shares.panels_a_share = std::max<int64_t>(1, panels / kPanelStep) * kPanelStep;
  shares.num_shares = ceil_div(num_panels, shares.panels_a_share);
  return shares;
}

}  // namespace

void cpu_linear(CpuContext& context, const Tensor& x, std::span<const LinearTask> tasks) {
  if (x.rows == 0) return;
  Input input{x, {}};
  bool any_integers = false;
  bool all_made = true;
  size_t scratch_bytes = 0;
  int64_t num_panels = 0;
  for (const LinearTask& task : tasks) {
    check_task(x, task);
    const CpuMatrix& matrix = matrix_of(task);
    num_panels += matrix.num_panels();
    any_integers |= !is_float(matrix);
    all_made &= matrix.makes_panels();
    scratch_bytes = std::max(scratch_bytes, matrix.scratch_bytes());
  }
  if (any_integers) quantize(context, input);
  const Shares shares = share_out(num_panels, x.rows, x.cols, context.pool.num_threads(), all_made);
  context.reserve_panels(scratch_bytes);
  const auto run_item = [&](int64_t item, int worker) {
    const int64_t group = item / shares.num_shares;
    const int64_t first_row = group * shares.rows_a_group;
    const int64_t end_row = std::min(x.rows, first_row + shares.rows_a_group);
    int64_t first = item % shares.num_shares * shares.panels_a_share;
    int64_t end = std::min(num_panels, first + shares.panels_a_share);
    // The tasks whose panels are among them.
    for (const LinearTask& task : tasks) {
      const CpuMatrix& matrix = matrix_of(task);
      const int64_t task_end = std::min(end, matrix.num_panels());
      if (first < task_end) {
        if (!matrix.makes_panels()) {
          run_panels(context, input, task, first, task_end, first_row, end_row, nullptr);
        } else if (group == 0) {  // made once for all rows
          run_panels(context, input, task, first, task_end, 0, x.rows, context.panels_of(worker));
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
