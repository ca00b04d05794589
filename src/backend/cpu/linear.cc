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

/// What the input is multiplied as.
enum class Product : uint8_t { floats, integers, tiles };

Product product_of(const CpuMatrix& matrix) {
  if (matrix.storage() != MatrixStorage::packed) return Product::floats;
  const CpuMatrix::PackedView view = matrix.packed_panels(0);
  if (view.order == PanelOrder::tiles) return Product::tiles;
  return view.format < PanelFormat::f16 ? Product::integers : Product::floats;
}

/// One call's input, also as integers or tiles where a packed weight asks for it.
struct Input {
  const Tensor& x;
  QuantizedRows quantized;
  TileRows tiles;
};

void make_tiles(CpuContext& context, Input& input) {
  const Tensor& x = input.x;
  input.tiles = context.tile_rows(x.rows, x.cols);
  context.for_rows(
      ceil_div(x.rows, kTileGroupRows), std::min(x.rows, kTileGroupRows) * x.cols,
      [&](int64_t group) { context.kernels.tile_rows(x.f32(), x.row_stride, group, input.tiles); });
}

void quantize(CpuContext& context, Input& input) {
  const Tensor& x = input.x;
  input.quantized = context.quantized_rows(x.rows, x.cols);
  context.for_rows(x.rows, x.cols,
                   [&](int64_t r) { context.kernels.quantize_row(x.f32(r), r, input.quantized); });
}

/// Panels [first, end) of a packed matrix times rows [first_row, end_row).
void run_packed(const CpuContext& context, const Input& input, const LinearTask& task,
                int64_t first, int64_t end, int64_t first_row, int64_t end_row) {
  const CpuMatrix& matrix = matrix_of(task);
  const CpuMatrix::PackedView view = matrix.packed_panels(first);
  const int64_t first_output = first * kPanelRows;
  PanelRun args;
  args.panels = view.panels;
  args.panel_bytes = view.panel_bytes;
  args.low_panels = view.low_panels;
  args.x = input.quantized;
  args.first_row = first_row;
  args.num_rows = end_row - first_row;
  args.num_outputs = std::min(end * kPanelRows, matrix.rows()) - first_output;
  args.bias = task.bias.data != nullptr ? task.bias.f32() + first_output : nullptr;
  args.out = task.out.f32() + first_output;
  args.out_stride = task.out.row_stride;
  context.kernels.int_panels[static_cast<size_t>(view.format)](args);
}

/// The same of a matrix in the order of tiles. scratch: kTileScratchBytes.
void run_tiles(const CpuContext& context, const Input& input, const LinearTask& task, int64_t first,
               int64_t end, int64_t first_row, int64_t end_row, float* scratch) {
  const CpuMatrix& matrix = matrix_of(task);
  const CpuMatrix::PackedView view = matrix.packed_panels(first);
  const int64_t first_output = first * kPanelRows;
  TileRun args;
  args.panels = view.panels;
  args.panel_bytes = view.panel_bytes;
  args.x = input.tiles;
  args.first_row = first_row;
  args.num_rows = end_row - first_row;
  args.num_outputs = std::min(end * kPanelRows, matrix.rows()) - first_output;
  args.bias = task.bias.data != nullptr ? task.bias.f32() + first_output : nullptr;
  args.out = task.out.f32() + first_output;
  args.out_stride = task.out.row_stride;
  args.scratch = scratch;
  context.kernels.tile_panels[static_cast<size_t>(view.format)](args);
}

/// Panels [first, end) of a matrix of floats times rows [first_row, end_row). scratch: for decoding
/// a panel of the file's format.
void run_floats(const CpuContext& context, const Input& input, const LinearTask& task,
                int64_t first, int64_t end, int64_t first_row, int64_t end_row, float* scratch) {
  const CpuMatrix& matrix = matrix_of(task);
  const bool is_source = matrix.storage() == MatrixStorage::source;
  const int64_t step = is_source ? 1 : end - first;
  for (int64_t panel = first; panel < end; panel += step) {
    const int64_t first_output = panel * kPanelRows;
    FloatRun args;
    args.x = input.x.f32(first_row);
    args.x_stride = input.x.row_stride;
    args.cols = input.x.cols;
    args.num_rows = end_row - first_row;
    args.num_outputs = std::min((panel + step) * kPanelRows, matrix.rows()) - first_output;
    args.bias = task.bias.data != nullptr ? task.bias.f32() + first_output : nullptr;
    args.out = task.out.f32(first_row) + first_output;
    args.out_stride = task.out.row_stride;
    if (matrix.storage() == MatrixStorage::packed) {
      const CpuMatrix::PackedView view = matrix.packed_panels(panel);
      args.panels = view.panels;
      (view.format == PanelFormat::f16 ? context.kernels.f16_panels
                                       : context.kernels.bf16_panels)(args);
    } else {
      args.panels = matrix.float_panel(panel, scratch);
      context.kernels.f32_panels(args);
    }
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

Shares share_out(int64_t num_panels, int64_t num_rows, int64_t cols, int num_threads,
                 bool has_tiles) {
  // Quantised rows of a group stay in a second-level cache while weights pass by.
  constexpr int64_t kGroupBytes = 256 << 10;
  constexpr int64_t kTileGroupBytes = 768 << 10;
  // Kernels take panels two at a time and rows in tiles.
  constexpr int64_t kPanelStep = 2;
  constexpr int64_t kRowStep = 32;
  static_assert(kRowStep % kTileRows == 0);
  // Enough items that a thread which is held up does not hold up the others for long, and small
  // ones where a few rows pass by the weights in microseconds.
  const int64_t items_a_thread = num_rows < kRowStep ? 64 : 8;
  Shares shares;
  const int64_t group_bytes = has_tiles ? kTileGroupBytes / 2 : kGroupBytes;
  shares.rows_a_group = std::max<int64_t>(1, group_bytes / cols / kRowStep) * kRowStep;
  shares.num_groups = ceil_div(num_rows, shares.rows_a_group);
  if (has_tiles) {
    shares.num_groups = ceil_div(num_rows, std::min(shares.rows_a_group, kTileMostRows));
    shares.rows_a_group = ceil_div(ceil_div(num_rows, shares.num_groups), kRowStep) * kRowStep;
  }
  const int64_t panels = num_panels * shares.num_groups / (items_a_thread * num_threads);
  shares.panels_a_share = std::max<int64_t>(1, panels / kPanelStep) * kPanelStep;
  // Setting up the tiles takes about as long as a few hundred weights.
  constexpr int64_t kTileItemsAThread = 4;
  if (has_tiles && num_rows <= 2 * kTileGroupRows) {
    shares.panels_a_share = even_share(num_panels, num_threads, kTileItemsAThread);
  }
  shares.num_shares = ceil_div(num_panels, shares.panels_a_share);
  return shares;
}

}  // namespace

void cpu_linear(CpuContext& context, const Tensor& x, std::span<const LinearTask> tasks) {
  if (x.rows == 0) return;
  Input input{x, {}, {}};
  bool any_integers = false;
  bool any_tiles = false;
  bool any_source = false;
  int64_t num_panels = 0;
  for (const LinearTask& task : tasks) {
    check_task(x, task);
    const CpuMatrix& matrix = matrix_of(task);
    num_panels += matrix.num_panels();
    const Product product = product_of(matrix);
    any_integers |= product == Product::integers;
    any_tiles |= product == Product::tiles;
    any_source |= matrix.storage() == MatrixStorage::source;
  }
  if (any_integers) quantize(context, input);
  if (any_tiles) make_tiles(context, input);
  const int num_threads = context.pool.num_threads();
  const Shares shares = share_out(num_panels, x.rows, x.cols, num_threads, any_tiles);
  // One worker's: a decoded panel and a row, or what tiles need.
  constexpr int64_t kAlignment = 64 / sizeof(float);
  constexpr auto kTileFloats = static_cast<int64_t>(kTileScratchBytes / sizeof(float));
  const int64_t scratch_size =
      ceil_div(std::max(any_source ? x.cols * (kPanelRows + 1) : 0, any_tiles ? kTileFloats : 0),
               kAlignment) *
      kAlignment;
  float* scratch =
      align_up(context.scratch(static_cast<size_t>(scratch_size * num_threads + kAlignment)), 64);
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
        float* worker_scratch = scratch + worker * scratch_size;
        if (product_of(matrix) == Product::tiles) {
          run_tiles(context, input, task, first, task_end, first_row, end_row, worker_scratch);
        } else if (product_of(matrix) == Product::integers) {
          run_packed(context, input, task, first, task_end, first_row, end_row);
        } else if (matrix.storage() != MatrixStorage::source) {
          run_floats(context, input, task, first, task_end, first_row, end_row, worker_scratch);
        } else if (group == 0) {  // decoded once for all rows
          run_floats(context, input, task, first, task_end, 0, x.rows, worker_scratch);
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
