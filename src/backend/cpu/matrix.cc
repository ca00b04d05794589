// See matrix.h.
#include "backend/cpu/matrix.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/cpu/kernels/kernel_table.h"
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
  if (!all_bytes || *all_bytes != weight.data.size()) {
    return wrong("expected " + (all_bytes ? std::to_string(*all_bytes) : "too many") +
                 " bytes of weights, found " + std::to_string(weight.data.size()));
  }
  if (!weight.row_order.empty()) {
    HEADRACE_CHECK_EQ(static_cast<int64_t>(weight.row_order.size()), weight.rows);
    for (const int32_t row : weight.row_order) HEADRACE_CHECK(row >= 0 && row < weight.rows);
  }
  return static_cast<size_t>(*row_bytes);
}

}  // namespace

Result<std::unique_ptr<CpuMatrix>> CpuMatrix::pack(const WeightView& weight, ThreadPool& pool,
                                                   MatrixStorage storage) {
  HEADRACE_ASSIGN(const size_t row_bytes, check_view(weight));
  std::unique_ptr<CpuMatrix> matrix(new CpuMatrix);
  matrix->rows_ = weight.rows;
  matrix->cols_ = weight.cols;
  matrix->format_ = weight.format;
  matrix->storage_ = storage;
  matrix->row_bytes_ = row_bytes;
  const auto source = [&](int64_t row) {
    const int64_t from =
        weight.row_order.empty() ? row : weight.row_order[static_cast<size_t>(row)];
    return weight.data.data() + static_cast<size_t>(from) * row_bytes;
  };
  const int64_t num_panels = matrix->num_panels();
  if (storage == MatrixStorage::source) {
    matrix->bytes_ = Buffer(DType::i8, weight.rows, static_cast<int64_t>(row_bytes));
    auto* out = static_cast<std::byte*>(matrix->bytes_.view().data);
    for (int64_t row = 0; row < weight.rows; ++row) {
      std::memcpy(out + static_cast<size_t>(row) * row_bytes, source(row), row_bytes);
    }
    return matrix;
  }
  matrix->bytes_ = Buffer(DType::f32, num_panels * weight.cols, kPanelRows);
  float* out = matrix->bytes_.view().f32();
  std::vector<float> rows(static_cast<size_t>(pool.num_threads() * weight.cols));
  pool.parallel_for(num_panels, [&](int64_t panel, int worker) {
    matrix->decode_panel(panel, source, rows.data() + worker * weight.cols,
                         out + panel * weight.cols * kPanelRows);
  });
  return matrix;
}

int64_t CpuMatrix::num_panels() const {
  return ceil_div(rows_, kPanelRows);
}

const std::byte* CpuMatrix::source_row(int64_t row) const {
  return static_cast<const std::byte*>(bytes_.view().data) + static_cast<size_t>(row) * row_bytes_;
}

void CpuMatrix::decode_panel(int64_t panel, FunctionRef<const std::byte*(int64_t)> source,
                             float* row_scratch, float* out) const {
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
  if (storage_ == MatrixStorage::source) {
    const FormatTraits& traits = format_traits(format_);
    traits.decode(source_row(row), out, static_cast<size_t>(cols_) / traits.block_elements);
    return;
  }
  const float* panel = bytes_.view().f32() + row / kPanelRows * cols_ * kPanelRows;
  for (int64_t k = 0; k < cols_; ++k) out[k] = panel[k * kPanelRows + row % kPanelRows];
}

const float* CpuMatrix::float_panel(int64_t panel, float* scratch) const {
  if (storage_ == MatrixStorage::decoded) {
    return bytes_.view().f32() + panel * cols_ * kPanelRows;
  }
  decode_panel(
      panel, [this](int64_t row) { return source_row(row); }, scratch + kPanelRows * cols_,
      scratch);
  return scratch;
}

}  // namespace headrace
