// See top_search.h.
#include "backend/cpu/top_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>

#include "backend/cpu/linear_input.h"
#include "backend/sample_rows.h"
#include "base/check.h"
#include "base/checked.h"

namespace headrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
/// Larger numbers could overflow in a product.
constexpr double kMostNorm = 1e30;

/// A search that computes more of the panels than this takes longer than computing all.
constexpr double kWorthwhile = 0.2;
constexpr int32_t kLongestPause = 64;

/// Outputs below this may become equal by LinearTask::scale.
constexpr float kLeastScaled = 0x1p-80F;

/// Whether outputs that differ do so after they were multiplied by it, from kLeastScaled on: for
/// most factors two numbers may become one.
bool keeps_order(float scale) {
  int exponent = 0;
  return scale == 1.0F || (std::frexp(scale, &exponent) == 0.5F && scale > 0x1p-30F && scale < 1);
}

/// Panels of a task: few enough that threads end at about the same time.
constexpr int64_t kCoarsePanels = 64;
constexpr int64_t kScanPanels = 64;

/// Of the only row: the sum of the squares of a block's integers, in units of `scale`. Exact.
double size_of_integers(const KernelTable& kernels, const QuantizedRows& x, int64_t block) {
  int64_t sum = 0;
  for (int64_t i = 0; i < kBlockCols; ++i) {
    const int64_t high = x.high[block * kBlockCols + i];
    int64_t integer = high;
    if (!kernels.has_wide_steps) {
      integer = 128 * high + (x.has_low[block] != 0 ? x.low[block * kBlockCols + i] : 0);
    } else {
      for (int64_t w = block * kWideSteps; w < (block + 1) * kWideSteps; ++w) {
        if (i / kStepCols == x.wide_steps[w])
          integer += 128 * x.wide[w * kStepCols + i % kStepCols];
      }
    }
    sum += integer * integer;
  }
  return static_cast<double>(sum) / (kernels.has_wide_steps ? 1 : 128 * 128);
}

/// Whether a panel's outputs, `coarse` [16], may be at `least` or above: by norms of rows, then of
/// blocks.
bool may_reach(const CoarseBounds& bounds, int64_t panel, const float* coarse, float norm,
               const float* block_norms, int64_t num_blocks, float least) {
  const float* row_norms = bounds.row_norms() + panel * kPanelRows;
  bool any = false;
  for (int64_t i = 0; i < kPanelRows; ++i) any |= coarse[i] + row_norms[i] * norm >= least;
  if (!any) return false;
  float sums[kPanelRows] = {};
  const uint8_t* units = bounds.block_norms(panel);
  for (int64_t b = 0; b < num_blocks; ++b) {
    for (int64_t i = 0; i < kPanelRows; ++i) {
      sums[i] += block_norms[b] * static_cast<float>(units[b * kPanelRows + i]);
    }
  }
  const float* unit = bounds.block_units(panel);
  // Of the sums' own roundings.
  const float slack = 1.0F + 0x1p-22F * static_cast<float>(num_blocks + 4);
  any = false;
  for (int64_t i = 0; i < kPanelRows; ++i) {
    const float bound = std::min(sums[i] * unit[i] * slack, row_norms[i] * norm);
    any |= coarse[i] + bound >= least;
  }
  return any;
}

}  // namespace

void TopSearch::reserve(int64_t rows, int64_t cols) {
  scanner_.reserve(1, rows);
  block_norms_.resize(std::max(block_norms_.size(), static_cast<size_t>(cols / kBlockCols)));
  top_.resize(kMaxTopLogits);
  panels_.reserve(kMaxTopLogits);
  exact_.resize(kMaxTopLogits * kPanelRows);
}

bool TopSearch::run(const LinearInput& x, const LinearTask& task, int32_t num_top) {
  const auto& matrix = static_cast<const CpuMatrix&>(*task.weight);
  if (matrix.coarse_bounds() == nullptr || x.x.rows != 1 || task.bias.data != nullptr) return false;
  if (num_top > kMaxTopLogits || num_top >= matrix.rows()) return false;
  if (task.add_to.data != nullptr || !keeps_order(task.scale)) return false;
  HEADRACE_CHECK_GE(num_top, 1);
  Pause& pause = pauses_[num_top == 1 ? 0 : 1];
  if (pause.left > 0) {
    --pause.left;
    return false;
  }
  reserve(matrix.rows(), matrix.cols());
  Input input;
  if (!measure(x, input)) return false;
  const CoarseBounds& bounds = *matrix.coarse_bounds();
  // Of |W x| for any row of W, of U or of L.
  const double most = (2 * bounds.largest_weights() + 2 * bounds.largest_row_norm()) *
                      static_cast<double>(input.norm);
  if (!(most < kMostNorm)) return false;

  float* const out = task.out.f32();
  multiply_coarse(matrix, input, out);
  const float lowest = lowest_of_top(matrix, input, out, num_top);
  if (task.scale != 1.0F && std::abs(lowest) < kLeastScaled) return false;
  // Roundings: of both sums, one for each block and three for a product; of adding a bound.
  const auto num_blocks = static_cast<double>(matrix.cols() / kBlockCols);
  const double roundings = (num_blocks + 8) * 0x1p-23 * most;
  compute_rest(matrix, input, -round_up(roundings - static_cast<double>(lowest)), out);
  if (task.scale != 1.0F) context_.kernels.scale(out, task.scale, matrix.rows(), out);

  const double share =
      static_cast<double>(panels_computed_) / static_cast<double>(matrix.num_panels());
  pause.last = share <= kWorthwhile ? 0 : std::min(kLongestPause, 2 * pause.last + 1);
  pause.left = pause.last;
  return true;
}

/// Makes integers of x. False if not all numbers are finite.
bool TopSearch::measure(const LinearInput& x, Input& input) {
  input.row = prepare_input(context_, x, {.integers = true}).integers;
  const int64_t num_blocks = x.x.cols / kBlockCols;
  double squares = 0;
  for (int64_t b = 0; b < num_blocks; ++b) {
    const double size = size_of_integers(context_.kernels, input.row, b);
    const double scale = static_cast<double>(input.row.scale[b]);
    const double square = size * scale * scale;
    block_norms_[static_cast<size_t>(b)] = round_up(std::sqrt(square) * kNormSlack);
    squares += square;
  }
  const double norm = std::sqrt(squares) * kNormSlack;
  if (!(norm < kMostNorm)) return false;
  input.norm = round_up(norm);
  input.block_norms = block_norms_.data();
  return true;
}

void TopSearch::multiply_coarse(const CpuMatrix& matrix, const Input& input, float* out) {
  const int64_t num_panels = matrix.num_panels();
  context_.pool.parallel_for(ceil_div(num_panels, kCoarsePanels), [&](int64_t task, int) {
    const int64_t first = task * kCoarsePanels;
    const int64_t end = std::min(num_panels, first + kCoarsePanels);
    multiply(matrix, input, PanelFormat::q8_coarse, first, end, out + first * kPanelRows);
  });
}

/// The num_top-th largest of the outputs of those panels that have the largest by the upper bits.
float TopSearch::lowest_of_top(const CpuMatrix& matrix, const Input& input, const float* coarse,
                               int32_t num_top) {
  RowScan scan;
  scan.row = coarse;
  scan.num_top = num_top;
  scan.top = top_.data();
  scanner_.run(std::span(&scan, 1), matrix.rows());
  HEADRACE_CHECK_EQ(scan.num_found, num_top);
  panels_.clear();
  for (int32_t i = 0; i < num_top; ++i) {
    panels_.push_back(top_[static_cast<size_t>(i)].id / kPanelRows);
  }
  std::sort(panels_.begin(), panels_.end());
  panels_.erase(std::unique(panels_.begin(), panels_.end()), panels_.end());
  const auto count = static_cast<int64_t>(panels_.size());
  std::fill_n(exact_.begin(), count * kPanelRows, -kInf);
  const auto compute_one = [&](int64_t i, int) {
    compute(matrix, input, panels_[static_cast<size_t>(i)], exact_.data() + i * kPanelRows);
  };
  if (count == 1) {
    compute_one(0, 0);
  } else {
    context_.pool.parallel_for(count, compute_one);
  }
  const auto nth = exact_.begin() + num_top - 1;
  std::nth_element(exact_.begin(), nth, exact_.begin() + count * kPanelRows, std::greater<>());
  return *nth;
}

void TopSearch::compute_rest(const CpuMatrix& matrix, const Input& input, float least, float* out) {
  const int64_t num_panels = matrix.num_panels();
  const int64_t num_blocks = matrix.cols() / kBlockCols;
  std::atomic<int64_t> computed{0};
  context_.pool.parallel_for(ceil_div(num_panels, kScanPanels), [&](int64_t task, int) {
    const int64_t end = std::min(num_panels, (task + 1) * kScanPanels);
    int64_t count = 0;
    for (int64_t panel = task * kScanPanels; panel < end; ++panel) {
      float* const at = out + panel * kPanelRows;
      const int64_t rows = std::min(kPanelRows, matrix.rows() - panel * kPanelRows);
      // The last panel may end early: it is always computed.
      if (rows < kPanelRows || may_reach(*matrix.coarse_bounds(), panel, at, input.norm,
                                         input.block_norms, num_blocks, least)) {
        compute(matrix, input, panel, at);
        ++count;
      } else {
        std::fill_n(at, kPanelRows, -kInf);
      }
    }
    computed.fetch_add(count, std::memory_order_relaxed);
  });
  panels_computed_ = computed.load(std::memory_order_relaxed);
}

/// One panel with all bits.
void TopSearch::compute(const CpuMatrix& matrix, const Input& input, int64_t panel,
                        float* out) const {
  multiply(matrix, input, *matrix.panel_format(), panel, panel + 1, out);
}

/// Panels [first, end), read as `format`; out: of panel `first` on.
void TopSearch::multiply(const CpuMatrix& matrix, const Input& input, PanelFormat format,
                         int64_t first, int64_t end, float* out) const {
  const CpuMatrix::Panels view = matrix.panels(first, end - first, nullptr);
  PanelRun args;
  args.panels = reinterpret_cast<const uint8_t*>(view.data);
  args.panel_bytes = view.panel_bytes;
  args.low_panels = view.low_panels;
  args.x = input.row;
  args.num_rows = 1;
  args.num_outputs = std::min(end * kPanelRows, matrix.rows()) - first * kPanelRows;
  args.out = out;
  args.out_stride = matrix.rows();
  context_.kernels.int_panels[static_cast<size_t>(format)](args);
}

}  // namespace headrace
