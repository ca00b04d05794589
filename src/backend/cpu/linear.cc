// See linear.h.
#include "backend/cpu/linear.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/linear_input.h"
#include "backend/cpu/matrix.h"

namespace headrace {
namespace {

void check_task(const LinearTask& task, int64_t rows, int64_t cols) {
  HEADRACE_CHECK(task.weight != nullptr);
  HEADRACE_CHECK_EQ(task.weight->cols(), cols);
  HEADRACE_CHECK_EQ(task.out.cols, task.weight->rows());
  HEADRACE_CHECK_EQ(task.out.rows, rows);
  if (task.bias.data != nullptr) HEADRACE_CHECK_EQ(task.bias.cols, task.weight->rows());
  if (task.add_to.data != nullptr) {
    HEADRACE_CHECK_EQ(task.add_to.rows, rows);
    HEADRACE_CHECK_EQ(task.add_to.cols, task.weight->rows());
  }
}

void check_input(const LinearInput& input) {
  if (input.norm.data != nullptr) {
    HEADRACE_CHECK(input.up.data == nullptr && !input.activates);
    HEADRACE_CHECK_EQ(input.norm.cols, input.x.cols);
  }
  if (input.norm_bias.data != nullptr) {
    HEADRACE_CHECK(input.norm.data != nullptr && input.centers);
    HEADRACE_CHECK_EQ(input.norm_bias.cols, input.x.cols);
  }
  if (input.up.data != nullptr) {
    HEADRACE_CHECK_EQ(input.up.rows, input.x.rows);
    HEADRACE_CHECK_EQ(input.up.cols, input.x.cols);
  }
}

void check_group(const LinearGroup& group) {
  check_input(group.input);
  for (const int32_t row : group.rows) HEADRACE_CHECK(row >= 0 && row < group.input.x.rows);
  for (const LinearTask& task : group.tasks) check_task(task, group.num_rows(), group.cols());
}

const CpuMatrix& matrix_of(const LinearTask& task) {
  return static_cast<const CpuMatrix&>(*task.weight);
}

/// Panels [first, end) of a task's matrix times rows [first_row, end_row).
struct Part {
  const LinearTask& task;
  int64_t first = 0;
  int64_t end = 0;
  int64_t first_row = 0;
  int64_t end_row = 0;

  const CpuMatrix& matrix() const { return matrix_of(task); }
  int64_t first_output() const { return first * kPanelRows; }
  int64_t num_rows() const { return end_row - first_row; }
  int64_t num_outputs() const {
    return std::min(end * kPanelRows, matrix().rows()) - first_output();
  }
};

/// What every kernel is told of a part, but for its input and where the rows of `out` begin.
template <class Run>
Run run_of(const Part& part, const CpuMatrix::Panels& panels) {
  Run run;
  run.panels = reinterpret_cast<decltype(run.panels)>(panels.data);
  run.num_rows = part.num_rows();
  run.num_outputs = part.num_outputs();
  const Tensor& bias = part.task.bias;
  run.bias = bias.data != nullptr ? bias.f32() + part.first_output() : nullptr;
  run.out = part.task.out.f32() + part.first_output();
  run.out_stride = part.task.out.row_stride;
  return run;
}

void run_integers(const CpuContext& context, const PreparedInput& input, const Part& part,
                  const CpuMatrix::Panels& panels) {
  auto run = run_of<PanelRun>(part, panels);
  run.panel_bytes = panels.panel_bytes;
  run.low_panels = panels.low_panels;
  run.x = input.integers;
  run.first_row = part.first_row;
  context.kernels.int_panels[static_cast<size_t>(*part.matrix().panel_format())](run);
}

void run_tiles(const CpuContext& context, const PreparedInput& input, const Part& part,
               const CpuMatrix::Panels& panels, void* scratch) {
  auto run = run_of<TileRun>(part, panels);
  run.panel_bytes = panels.panel_bytes;
  run.x = input.tiles;
  run.first_row = part.first_row;
  run.scratch = scratch;
  context.kernels.tile_panels[static_cast<size_t>(*part.matrix().panel_format())](run);
}

void run_floats(const CpuContext& context, const PreparedInput& input, const Part& part,
                const CpuMatrix::Panels& panels) {
  auto run = run_of<FloatRun>(part, panels);
  run.x = input.floats.f32(part.first_row);
  run.x_stride = input.floats.row_stride;
  run.cols = input.floats.cols;
  run.out = part.task.out.f32(part.first_row) + part.first_output();
  const auto format = part.matrix().panel_format();
  (!format                       ? context.kernels.f32_panels
   : *format == PanelFormat::f16 ? context.kernels.f16_panels
                                 : context.kernels.bf16_panels)(run);
}

/// The part of LinearTask::scale and add_to.
void finish_part(const CpuContext& context, const Part& part) {
  const LinearTask& task = part.task;
  if (task.scale == 1.0F && task.add_to.data == nullptr) return;
  for (int64_t row = part.first_row; row < part.end_row; ++row) {
    float* out = task.out.f32(row) + part.first_output();
    if (task.scale != 1.0F) context.kernels.scale(out, task.scale, part.num_outputs(), out);
    if (task.add_to.data == nullptr) continue;
    context.kernels.add(task.add_to.f32(row) + part.first_output(), out, part.num_outputs());
  }
}

/// Memory of one thread.
struct Scratch {
  std::byte* panels = nullptr;  ///< where panels are made from the file's rows
  void* tiles = nullptr;        ///< TileRun::scratch
};

void run_part(const CpuContext& context, const PreparedInput& input, const Part& whole,
              const Scratch& scratch) {
  const CpuMatrix& matrix = whole.matrix();
  const InputForm form = matrix.input_form();
  const int64_t step = matrix.makes_panels() ? CpuMatrix::kMadePanels : whole.end - whole.first;
  Part part = whole;
  for (; part.first < whole.end; part.first += step) {
    part.end = std::min(whole.end, part.first + step);
    const CpuMatrix::Panels panels =
        matrix.panels(part.first, part.end - part.first, scratch.panels);
    switch (form) {
      case InputForm::floats:
        run_floats(context, input, part, panels);
        break;
      case InputForm::integers:
        run_integers(context, input, part, panels);
        break;
      case InputForm::tiles: {
        // Panels that were made are used for all rows, of which the kernel takes some at a time.
        Part rows = part;
        for (; rows.first_row < part.end_row; rows.first_row = rows.end_row) {
          rows.end_row = std::min(part.end_row, rows.first_row + kTileMostRows);
          run_tiles(context, input, rows, panels, scratch.tiles);
        }
        break;
      }
    }
  }
  finish_part(context, whole);
}

/// Panels a share where there are few rows and each item costs something to begin: at most
/// `most_items` items a thread, as many for each thread as the number of panels allows.
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

/// A group's products, as far as sharing out needs to know them.
struct GroupShape {
  int64_t num_panels = 0;  ///< of all its matrices
  int64_t num_rows = 0;
  int64_t cols = 0;
  bool has_tiles = false;
  bool all_made = true;  ///< all panels are made from the file's rows: once for all rows
};

GroupShape shape_of(const LinearGroup& group) {
  GroupShape shape;
  shape.num_rows = group.num_rows();
  shape.cols = group.cols();
  shape.has_tiles = group.forms.tiles;
  for (const LinearTask& task : group.tasks) {
    shape.num_panels += matrix_of(task).num_panels();
    shape.all_made &= matrix_of(task).makes_panels();
  }
  return shape;
}

/// Multiply-adds, or what few rows read, whichever takes longer.
double work_of(const LinearGroup& group) {
  constexpr int64_t kRowsInTimeOfReading = 8;
  const auto rows = static_cast<double>(std::max(group.num_rows(), kRowsInTimeOfReading));
  double weights = 0;
  for (const LinearTask& task : group.tasks) {
    weights += static_cast<double>(matrix_of(task).num_panels() * task.weight->cols());
  }
  return rows * weights;
}

/// `part`: of the work of all groups that are computed at once.
Shares share_out(const GroupShape& group, int num_threads, double part) {
  // Rows of a group stay in a second-level cache, in their form, while weights pass by.
  constexpr int64_t kGroupBytes = 256 << 10;
  constexpr int64_t kTileGroupBytes = 768 << 10;
  // Kernels take panels two at a time and rows in tiles.
  constexpr int64_t kPanelStep = 2;
  constexpr int64_t kRowStep = 32;
  static_assert(kRowStep % kTileRows == 0);
  // Enough items that a thread which is held up does not hold up the others for long, and small
  // ones where a few rows pass by the weights in microseconds.
  const double most_items = group.num_rows < kRowStep ? 64 : 8;
  const auto items_a_thread = std::max<int64_t>(1, std::llround(part * most_items));
  Shares shares;
  const int64_t group_bytes = group.has_tiles ? kTileGroupBytes / 2 : kGroupBytes;
  shares.rows_a_group = std::max<int64_t>(1, group_bytes / group.cols / kRowStep) * kRowStep;
  // With many rows a thread keeps to its own: nothing that it reads was written by another. Panels
  // are then unpacked by each thread, which many rows make up for.
  constexpr int64_t kOwnRows = 64;
  if (!group.has_tiles && group.num_rows >= kOwnRows * num_threads) {
    const int64_t own = ceil_div(group.num_rows, int64_t{num_threads});
    shares.rows_a_group = std::min(shares.rows_a_group, ceil_div(own, kRowStep) * kRowStep);
  }
  if (group.all_made) shares.rows_a_group = group.num_rows;
  shares.num_groups = ceil_div(group.num_rows, shares.rows_a_group);
  if (group.has_tiles && !group.all_made) {
    shares.num_groups = ceil_div(group.num_rows, std::min(shares.rows_a_group, kTileMostRows));
    shares.rows_a_group =
        ceil_div(ceil_div(group.num_rows, shares.num_groups), kRowStep) * kRowStep;
  }
  const int64_t panels = group.num_panels * shares.num_groups / (items_a_thread * num_threads);
  shares.panels_a_share = std::max<int64_t>(1, panels / kPanelStep) * kPanelStep;
  // Setting up the tiles takes about as long as a few hundred weights.
  constexpr int64_t kTileItemsAThread = 4;
  if (group.has_tiles && group.num_rows <= 2 * kTileGroupRows) {
    shares.panels_a_share = even_share(group.num_panels, num_threads, kTileItemsAThread);
  }
  shares.num_shares = ceil_div(group.num_panels, shares.panels_a_share);
  return shares;
}

constexpr int64_t kTileFloats = kTileScratchBytes / sizeof(float);
static_assert(kTileScratchBytes % 64 == 0);

/// TileRun::scratch of all threads.
float* tile_scratch(CpuContext& context) {
  return context.scratch(static_cast<size_t>(kTileFloats * context.pool.num_threads()));
}

/// An item of a group, of Shares::num_items().
void run_item(const CpuContext& context, const LinearGroup& group, int64_t item,
              const Scratch& scratch) {
  const Shares& shares = group.shares;
  const int64_t row_group = item / shares.num_shares;
  const int64_t first_row = row_group * shares.rows_a_group;
  const int64_t end_row = std::min(group.num_rows(), first_row + shares.rows_a_group);
  int64_t first = item % shares.num_shares * shares.panels_a_share;
  int64_t end = first + shares.panels_a_share;
  // The tasks whose panels are among them.
  for (const LinearTask& task : group.tasks) {
    const CpuMatrix& matrix = matrix_of(task);
    const int64_t task_end = std::min(end, matrix.num_panels());
    if (first < task_end) {
      if (!matrix.makes_panels()) {
        run_part(context, group.prepared, {task, first, task_end, first_row, end_row}, scratch);
      } else if (row_group == 0) {  // made once for all rows
        run_part(context, group.prepared, {task, first, task_end, 0, group.num_rows()}, scratch);
      }
    }
    first = std::max<int64_t>(0, first - matrix.num_panels());
    end -= matrix.num_panels();
    if (end <= 0) break;
  }
}

}  // namespace

void reserve_linear(CpuContext& context, const InputForms& forms, int64_t max_rows,
                    int64_t max_cols) {
  reserve_input(context, forms, max_rows, max_cols);
  if (forms.tiles) tile_scratch(context);
}

void cpu_linear_groups(CpuContext& context, std::span<LinearGroup> groups) {
  InputForms forms;
  size_t made_bytes = 0;
  double all = 0;
  for (LinearGroup& group : groups) {
    check_group(group);
    for (const LinearTask& task : group.tasks) {
      const CpuMatrix& matrix = matrix_of(task);
      made_bytes = std::max(made_bytes, matrix.scratch_bytes());
      group.forms.add(matrix.input_form());
      group.forms.signed_codes |= matrix.has_signed_codes();
    }
    forms.add(group.forms);
    all += work_of(group);
  }
  prepare_inputs(context, groups);
  int64_t num_items = 0;
  for (LinearGroup& group : groups) {
    group.shares = share_out(shape_of(group), context.pool.num_threads(), work_of(group) / all);
    group.first_item = num_items;
    num_items += group.shares.num_items();
  }
  context.reserve_panels(made_bytes);
  float* tiles = forms.tiles ? tile_scratch(context) : nullptr;
  context.pool.parallel_for(num_items, [&](int64_t item, int worker) {
    const auto next = std::upper_bound(
        groups.begin(), groups.end(), item,
        [](int64_t at, const LinearGroup& group) { return at < group.first_item; });
    Scratch scratch;
    if (forms.tiles) scratch.tiles = tiles + kTileFloats * worker;
    if (made_bytes > 0) scratch.panels = context.panels_of(worker);
    const LinearGroup& group = *(next - 1);
    run_item(context, group, item - group.first_item, scratch);
  });
}

void cpu_linear(CpuContext& context, const LinearInput& input, std::span<const LinearTask> tasks) {
  if (input.x.rows == 0) return;
  LinearGroup group;
  group.input = input;
  group.tasks = tasks;
  cpu_linear_groups(context, std::span(&group, 1));
}

}  // namespace headrace
