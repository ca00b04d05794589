// See linear.h.
#include "backend/cpu/linear.h"

#include <array>
#include <vector>

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
  const auto quantize_row = context.kernels.forms[static_cast<size_t>(form)].quantize_row;
  context.for_rows(x.rows, x.cols, [&](int64_t r) { quantize_row(x.f32(r), r, q); });
}

void run_int_panel(const CpuContext& context, const Input& input, const LinearTask& task,
                   int64_t panel) {
  const int64_t first = panel * kPanelRows;
  const CpuMatrix::IntPanelView view = matrix_of(task).int_panel(panel);
  const auto form = static_cast<size_t>(context.form_of(matrix_of(task).precision()));
  IntPanel args;
  args.scales = view.scales;
  args.codes = view.codes;
  args.x = input.quantized[form];
  args.num_rows = input.x.rows;
  args.bias = task.bias.data != nullptr ? task.bias.f32() + first : nullptr;
  args.out = task.out.f32() + first;
  args.out_stride = task.out.row_stride;
  args.num_lanes = std::min(kPanelRows, task.weight->rows() - first);
  context.kernels.forms[form].panels[static_cast<size_t>(view.format)](args);
}

void run_float_panel(const CpuContext& context, const Input& input, const LinearTask& task,
                     int64_t panel, float* scratch) {
  const int64_t first = panel * kPanelRows;
  FloatPanel args;
  args.panel = matrix_of(task).float_panel(panel, scratch);
  args.x = input.x.f32();
  args.x_stride = input.x.row_stride;
  args.cols = input.x.cols;
  args.num_rows = input.x.rows;
  args.bias = task.bias.data != nullptr ? task.bias.f32() + first : nullptr;
  args.out = task.out.f32() + first;
  args.out_stride = task.out.row_stride;
  args.num_lanes = std::min(kPanelRows, task.weight->rows() - first);
  context.kernels.float_panel(args);
}

}  // namespace

void cpu_linear(CpuContext& context, const Tensor& x, std::span<const LinearTask> tasks) {
  if (x.rows == 0) return;
  Input input{x, {}};
  std::array<bool, kNumActivationForms> is_needed = {};
  bool any_source = false;
  // Panels of all tasks, counted through.
  std::vector<int64_t> first_panel(tasks.size() + 1, 0);
  for (size_t i = 0; i < tasks.size(); ++i) {
    check_task(x, tasks[i]);
    const CpuMatrix& matrix = matrix_of(tasks[i]);
    first_panel[i + 1] = first_panel[i] + matrix.num_panels();
    if (matrix.storage() == MatrixStorage::packed) {
      is_needed[static_cast<size_t>(context.form_of(matrix.precision()))] = true;
    }
    any_source |= matrix.storage() == MatrixStorage::source;
  }
  for (size_t form = 0; form < is_needed.size(); ++form) {
    if (is_needed[form]) quantize(context, input, static_cast<ActivationForm>(form));
  }
  const int64_t num_panels = first_panel.back();
  const int num_threads = context.pool.num_threads();
  // Enough shares that a thread which is held up does not hold up the others for long.
  const int64_t share = std::max<int64_t>(1, num_panels / (8 * num_threads));
  const int64_t scratch_size = any_source ? x.cols * (kPanelRows + 1) : 0;
  float* scratch = context.scratch(static_cast<size_t>(scratch_size * num_threads));
  context.pool.parallel_for(ceil_div(num_panels, share), [&](int64_t item, int worker) {
    const int64_t end = std::min(num_panels, (item + 1) * share);
    size_t i = 0;
    for (int64_t panel = item * share; panel < end; ++panel) {
      while (panel >= first_panel[i + 1]) ++i;
      if (matrix_of(tasks[i]).storage() == MatrixStorage::packed) {
        run_int_panel(context, input, tasks[i], panel - first_panel[i]);
      } else {
        run_float_panel(context, input, tasks[i], panel - first_panel[i],
                        scratch + worker * scratch_size);
      }
    }
  });
}

}  // namespace headrace
