// See linear.h.
#include "backend/cpu/linear.h"

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

void run_float_panel(CpuContext& context, const Tensor& x, const LinearTask& task,
                     const CpuMatrix& weight, int64_t panel, float* scratch) {
  const int64_t first = panel * kPanelRows;
  FloatPanel args;
  args.panel = weight.float_panel(panel, scratch);
  args.x = x.f32();
  args.x_stride = x.row_stride;
  args.cols = x.cols;
  args.num_rows = x.rows;
  args.bias = task.bias.data != nullptr ? task.bias.f32() + first : nullptr;
  args.out = task.out.f32() + first;
  args.out_stride = task.out.row_stride;
  args.num_lanes = std::min(kPanelRows, weight.rows() - first);
  context.kernels.float_panel(args);
}

}  // namespace

void cpu_linear(CpuContext& context, const Tensor& x, std::span<const LinearTask> tasks) {
  if (x.rows == 0) return;
  // Panels of all tasks, counted through.
  std::vector<int64_t> first_panel(tasks.size() + 1, 0);
  for (size_t i = 0; i < tasks.size(); ++i) {
    check_task(x, tasks[i]);
    first_panel[i + 1] =
        first_panel[i] + static_cast<const CpuMatrix*>(tasks[i].weight)->num_panels();
  }
  const int64_t num_panels = first_panel.back();
  const int num_threads = context.pool.num_threads();
  // Enough shares that a thread which is held up does not hold up the others for long.
  const int64_t share = std::max<int64_t>(1, num_panels / (8 * num_threads));
  const int64_t scratch_size = x.cols * (kPanelRows + 1);
  float* scratch = context.scratch(static_cast<size_t>(scratch_size * num_threads));
  context.pool.parallel_for(ceil_div(num_panels, share), [&](int64_t item, int worker) {
    const int64_t end = std::min(num_panels, (item + 1) * share);
    size_t i = 0;
    for (int64_t panel = item * share; panel < end; ++panel) {
      while (panel >= first_panel[i + 1]) ++i;
      run_float_panel(context, x, tasks[i], *static_cast<const CpuMatrix*>(tasks[i].weight),
                      panel - first_panel[i], scratch + worker * scratch_size);
    }
  });
}

}  // namespace headrace
