// See matrix.h.
#include "backend/cpu/matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "base/checked.h"

namespace headrace {
namespace {

/// The size of the file's row, or what is wrong with the view.
Result<size_t> check_view(const WeightView& weight) {
  const auto wrong = [&](const std::string& message) {
    return Error{ErrorCode::corrupt_data, message, weight.name, ""};
  };
  if (weight.rows <= 0 || weight.cols <= 0) return wrong("a weight matrix has no elements");
  const auto row_bytes = format_row_bytes(weight.format, static_cast<uint64_t>(weight.cols));
  if (!row_bytes) {
    return wrong("rows of " + std::to_string(weight.cols) +
                 " weights are no multiple of a block of " +
                 std::string(format_traits(weight.format).name));
  }
  const auto all_bytes = checked_mul<uint64_t>(*row_bytes, static_cast<uint64_t>(weight.rows));
  if (weight.make_row) {
    HEADRACE_CHECK(!weight.data_stays);
    if (!all_bytes || weight.data.size() % static_cast<uint64_t>(weight.rows) != 0) {
      return wrong(std::to_string(weight.data.size()) + " bytes of weights are no " +
                   std::to_string(weight.rows) + " equal rows");
    }
  } else if (!all_bytes || *all_bytes != weight.data.size()) {
    return wrong("expected " + (all_bytes ? std::to_string(*all_bytes) : "too many") +
                 " bytes of weights, found " + std::to_string(weight.data.size()));
  }
  if (!weight.row_order.empty()) {
    HEADRACE_CHECK_EQ(static_cast<int64_t>(weight.row_order.size()), weight.rows);
    for (const int32_t row : weight.row_order) HEADRACE_CHECK(row >= 0 && row < weight.rows);
  }
  return static_cast<size_t>(*row_bytes);
}

// Weights that are packed before the file's pages are given back: large enough for the threads to
// share, small beside a model.
constexpr uint64_t kSliceBytes = uint64_t{8} << 20;

int64_t source_row_of(const WeightView& weight, int64_t row) {
  return weight.row_order.empty() ? row : weight.row_order[static_cast<size_t>(row)];
}

/// The rows of a panel for each thread, where WeightView::make_row makes them; and the first fault.
class MadeRows {
 public:
  MadeRows(const WeightView& weight, size_t row_bytes, size_t num_threads)
      : weight_(weight), row_bytes_(row_bytes) {
    if (weight.make_row) scratch_.resize(num_threads * kPanelRows * row_bytes);
  }

  /// Rows one after the other, the thread's until it makes others; null after a fault.
  const std::byte* make(int64_t first, int64_t count, int worker) {
    std::byte* const begin =
        scratch_.data() + static_cast<size_t>(worker) * kPanelRows * row_bytes_;
    for (int64_t i = 0; i < count; ++i) {
      auto made = weight_.make_row(source_row_of(weight_, first + i),
                                   begin + static_cast<size_t>(i) * row_bytes_);
      if (made.ok()) continue;
      const std::lock_guard lock(mutex_);
      // Whatever the threads' order, the same fault is told.
      if (first < fault_row_) fault_ = std::move(made).error();
      fault_row_ = std::min(fault_row_, first);
      return nullptr;
    }
    return begin;
  }

  Result<void> check() const {
    if (fault_) return *fault_;
    return {};
  }

 private:
  const WeightView& weight_;
  size_t row_bytes_;
  std::vector<std::byte> scratch_;
  std::mutex mutex_;
  std::optional<Error> fault_;
  int64_t fault_row_ = std::numeric_limits<int64_t>::max();
};

}  // namespace

Packing packing_for(const KernelTable& kernels) {
  if (kernels.tile_panels != nullptr) return {MatrixStorage::packed, PanelOrder::tiles};
  if (kernels.int_panels != nullptr) return {MatrixStorage::packed, PanelOrder::columns};
  return {MatrixStorage::decoded, PanelOrder::columns};
}

Result<std::unique_ptr<CpuMatrix>> CpuMatrix::pack(const WeightView& weight, ThreadPool& pool,
                                                   const Packing& packing, WeightMemory& memory) {
  HEADRACE_ASSIGN(const size_t row_bytes, check_view(weight));
  std::unique_ptr<CpuMatrix> matrix(new CpuMatrix);
  matrix->rows_ = weight.rows;
  matrix->cols_ = weight.cols;
  matrix->format_ = weight.format;
  MatrixStorage storage = packing.storage;
  if (storage == MatrixStorage::packed && (weight.format == Format::f32 || weight.is_exact)) {
    storage = MatrixStorage::decoded;
  }
  matrix->storage_ = storage;
  matrix->row_bytes_ = row_bytes;
  if (weight.data_stays) {
    matrix->leave_in_place(weight, packing.order);
    return matrix;
  }
  const int64_t num_panels = matrix->num_panels();
  uint64_t panel_size = kPanelRows * row_bytes;
  if (storage == MatrixStorage::decoded) {
    panel_size = static_cast<uint64_t>(weight.cols) * kPanelRows * sizeof(float);
  } else if (storage == MatrixStorage::packed) {
    if (const auto layout = panel_layout(weight.format, packing.order, weight.cols)) {
      const bool has_planes =
          weight.finds_top && weight.cols <= CoarseBounds::kMostBlocks * kBlockCols &&
          layout->format == PanelFormat::q8_0 && layout->order == PanelOrder::columns;
      matrix->layout_ = has_planes ? q8_planes_layout() : *layout;
      panel_size = panel_bytes(matrix->layout_, weight.cols);
    } else {
      matrix->storage_ = MatrixStorage::source;
    }
  }
  matrix->allocate(memory, panel_size, static_cast<uint64_t>(num_panels));
  if (matrix->layout_.format == PanelFormat::q8_planes) matrix->allocate_low(memory);
  if (matrix->storage_ == MatrixStorage::source) matrix->source_ = matrix->data_.get();

  HEADRACE_TRY(matrix->fill(weight, pool));
  if (matrix->bounds_) matrix->bounds_->finish();
  return matrix;
}

Result<void> CpuMatrix::fill(const WeightView& weight, ThreadPool& pool) {
  const auto rows = static_cast<uint64_t>(rows_);
  const size_t source_row_bytes = weight.data.size() / rows;
  const auto num_threads = static_cast<size_t>(pool.num_threads());
  const auto cols = static_cast<size_t>(cols_);
  std::vector<float> floats(storage_ == MatrixStorage::decoded ? num_threads * cols : 0);
  MadeRows made(weight, row_bytes_, num_threads);
  const auto fill_one = [&](int64_t panel, int worker) {
    float* const scratch = floats.empty() ? nullptr : floats.data() + worker * cols_;
    const int64_t first = panel * kPanelRows;
    if (weight.make_row) {
      const std::byte* const rows_made =
          made.make(first, std::min(kPanelRows, rows_ - first), worker);
      if (rows_made == nullptr) return;
      fill_panel(
          panel,
          [&](int64_t row) { return rows_made + static_cast<size_t>(row - first) * row_bytes_; },
          scratch);
    } else {
      fill_panel(
          panel,
          [&](int64_t row) {
            return weight.data.data() +
                   static_cast<size_t>(source_row_of(weight, row)) * row_bytes_;
          },
          scratch);
    }
  };
  const auto slice = static_cast<int64_t>(
      std::max<uint64_t>(1, kSliceBytes / (kPanelRows * std::max<uint64_t>(1, source_row_bytes))));
  for (int64_t first = 0; first < num_panels(); first += slice) {
    const int64_t count = std::min(slice, num_panels() - first);
    pool.parallel_for(count, [&](int64_t i, int worker) { fill_one(first + i, worker); });
    HEADRACE_TRY(made.check());
    if (weight.release && weight.row_order.empty()) {
      const auto begin = static_cast<size_t>(first * kPanelRows) * source_row_bytes;
      const auto size = static_cast<size_t>(count * kPanelRows) * source_row_bytes;
      weight.release(weight.data.subspan(begin, std::min(size, weight.data.size() - begin)));
    }
  }
  if (weight.release && !weight.row_order.empty()) weight.release(weight.data);
  return {};
}

void CpuMatrix::leave_in_place(const WeightView& weight, PanelOrder order) {
  if (storage_ == MatrixStorage::decoded) storage_ = MatrixStorage::source;
  if (storage_ == MatrixStorage::packed) {
    if (const auto layout = panel_layout(format_, order, cols_)) {
      layout_ = *layout;
    } else {
      storage_ = MatrixStorage::source;
    }
  }
  source_ = weight.data.data();
  source_order_.assign(weight.row_order.begin(), weight.row_order.end());
  num_bytes_ = weight.data.size();
}

void CpuMatrix::allocate(WeightMemory& memory, uint64_t panel_bytes, uint64_t num_panels) {
  const auto bytes = checked_mul(panel_bytes, num_panels);
  // A vector load may run past the last element, never past this padding.
  const auto padded = bytes ? checked_add<uint64_t>(*bytes, 64) : std::nullopt;
  if (!padded) throw std::bad_alloc();
  panel_bytes_ = static_cast<size_t>(panel_bytes);
  num_bytes_ = static_cast<size_t>(*bytes);
  // Not cleared here: the threads that fill the panels touch the pages first.
  data_ = memory.allocate(static_cast<size_t>(*padded));
  std::memset(data_.get() + num_bytes_, 0, 64);
}

void CpuMatrix::allocate_low(WeightMemory& memory) {
  bounds_ = std::make_unique<CoarseBounds>(num_panels(), cols_ / kBlockCols);
  // No more than of the upper bits.
  low_bytes_ = static_cast<size_t>(num_panels() * (cols_ / kBlockCols) * kLowPlaneBytes);
  low_data_ = memory.allocate(low_bytes_);
}

uint8_t* CpuMatrix::low_panel(int64_t panel) const {
  if (low_data_ == nullptr) return nullptr;
  return reinterpret_cast<uint8_t*>(low_data_.get()) +
         panel * (cols_ / kBlockCols) * kLowPlaneBytes;
}

void CpuMatrix::fill_panel(int64_t panel, RowSource source, float* row_scratch) {
  std::byte* out = data_.get() + static_cast<size_t>(panel) * panel_bytes_;
  const int64_t first_row = panel * kPanelRows;
  const int64_t num_rows = std::min(kPanelRows, rows_ - first_row);
  if (storage_ == MatrixStorage::decoded) {
    decode_panel(panel, source, row_scratch, reinterpret_cast<float*>(out));
    return;
  }
  if (storage_ == MatrixStorage::packed) {
    pack_panel(panel, source, reinterpret_cast<uint8_t*>(out));
    return;
  }
  if (num_rows < kPanelRows) std::memset(out, 0, panel_bytes_);
  for (int64_t lane = 0; lane < num_rows; ++lane) {
    std::memcpy(out + static_cast<size_t>(lane) * row_bytes_, source(first_row + lane), row_bytes_);
  }
}

void CpuMatrix::pack_panel(int64_t panel, RowSource source, uint8_t* out) const {
  const int64_t first_row = panel * kPanelRows;
  const int64_t num_rows = std::min(kPanelRows, rows_ - first_row);
  uint8_t* const low = low_panel(panel);
  std::memset(out, 0, panel_bytes(layout_, cols_));
  if (low != nullptr) {
    std::memset(low, 0, static_cast<size_t>(cols_ / kBlockCols * kLowPlaneBytes));
  }
  for (int64_t lane = 0; lane < num_rows; ++lane) {
    const std::byte* row = source(first_row + lane);
    pack_panel_row(layout_, row, cols_, lane, out, low);
    if (bounds_) bounds_->set_row(first_row + lane, row);
  }
}

int64_t CpuMatrix::num_panels() const {
  return ceil_div(rows_, kPanelRows);
}

const std::byte* CpuMatrix::panel_data(int64_t panel) const {
  return data_.get() + static_cast<size_t>(panel) * panel_bytes_;
}

void CpuMatrix::decode_panel(int64_t panel, RowSource source, float* row_scratch,
                             float* out) const {
  const FormatTraits& traits = format_traits(format_);
  const auto num_blocks = static_cast<size_t>(cols_) / traits.block_elements;
  for (int64_t lane = 0; lane < kPanelRows; ++lane) {
    const int64_t row = panel * kPanelRows + lane;
    if (row < rows_) {
      traits.decode(source(row), row_scratch, num_blocks);
    } else {
      std::fill_n(row_scratch, cols_, 0.0F);
    }
    for (int64_t k = 0; k < cols_; ++k) out[k * kPanelRows + lane] = row_scratch[k];
  }
}

void CpuMatrix::decode_row(int64_t row, float* out) const {
  HEADRACE_CHECK(row >= 0 && row < rows_);
  if (makes_panels()) {
    const FormatTraits& traits = format_traits(format_);
    traits.decode(source_row(row), out, static_cast<size_t>(cols_) / traits.block_elements);
    return;
  }
  const std::byte* panel = panel_data(row / kPanelRows);
  const int64_t lane = row % kPanelRows;
  if (storage_ == MatrixStorage::packed) {
    unpack_panel_row(layout_, reinterpret_cast<const uint8_t*>(panel), cols_, lane, out,
                     low_panel(row / kPanelRows));
    return;
  }
  const auto* weights = reinterpret_cast<const float*>(panel);
  for (int64_t k = 0; k < cols_; ++k) out[k] = weights[k * kPanelRows + lane];
}

std::optional<PanelFormat> CpuMatrix::panel_format() const {
  if (storage_ != MatrixStorage::packed) return std::nullopt;
  return layout_.format;
}

InputForm CpuMatrix::input_form() const {
  if (storage_ != MatrixStorage::packed) return InputForm::floats;
  if (layout_.order == PanelOrder::tiles) return InputForm::tiles;
  return layout_.format < PanelFormat::f16 ? InputForm::integers : InputForm::floats;
}

const std::byte* CpuMatrix::source_row(int64_t row) const {
  const int64_t from = source_order_.empty() ? row : source_order_[static_cast<size_t>(row)];
  return source_ + static_cast<size_t>(from) * row_bytes_;
}

size_t CpuMatrix::made_panel_bytes() const {
  if (storage_ == MatrixStorage::packed) return panel_bytes(layout_, cols_);
  return static_cast<size_t>(cols_ * kPanelRows) * sizeof(float);
}

size_t CpuMatrix::scratch_bytes() const {
  if (!makes_panels()) return 0;
  // After the panels a row as floats; a kernel's vector load may run into it.
  return kMadePanels * made_panel_bytes() + std::max<size_t>(64, sizeof(float) * cols_);
}

CpuMatrix::Panels CpuMatrix::panels(int64_t first, int64_t count, std::byte* scratch) const {
  HEADRACE_CHECK(first >= 0 && count >= 0 && first + count <= num_panels());
  if (!makes_panels()) {
    return {panel_data(first), static_cast<int64_t>(panel_bytes_), low_panel(first)};
  }
  HEADRACE_CHECK_LE(count, kMadePanels);
  const size_t bytes = made_panel_bytes();
  auto* row_scratch = reinterpret_cast<float*>(scratch + kMadePanels * bytes);
  const auto source = [&](int64_t row) { return source_row(row); };
  for (int64_t i = 0; i < count; ++i) {
    std::byte* out = scratch + static_cast<size_t>(i) * bytes;
    if (storage_ == MatrixStorage::packed) {
      pack_panel(first + i, source, reinterpret_cast<uint8_t*>(out));
    } else {
      decode_panel(first + i, source, row_scratch, reinterpret_cast<float*>(out));
    }
  }
  return {scratch, static_cast<int64_t>(bytes), nullptr};
}

}  // namespace headrace
