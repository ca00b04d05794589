// Kernels by themselves: the widths of the reference agree, activations quantise as promised.
#include <gtest/gtest.h>

#include <limits>

#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/matrix.h"
#include "backend/cpu/test_tensors.h"

namespace headrace {
namespace {

using namespace backend_test;

TEST(KernelTables, EveryAvailableIsaHasOne) {
  for (const Isa isa : available_isas()) {
    EXPECT_FALSE(kernel_tables(isa).empty());
    EXPECT_NE(std::string(kernel_table(isa).name).find(isa_name(isa)), std::string::npos);
  }
}

TEST(ReferenceKernels, EveryWidthGivesTheSameBits) {
  const auto tables = kernel_tables(Isa::reference);
  std::cout << tables.size() << " widths\n";
  const int64_t cols = 203;
  const Buffer panel = random_rows(cols, kPanelRows, 1);
  const Buffer x = random_rows(11, cols, 2, 20.0F);
  const Buffer weight = random_rows(1, cols, 3);
  std::vector<float> expected;
  for (const KernelTable* table : tables) {
    std::vector<float> results(11 * 13);
    FloatRun args;
    args.panels = panel.view().f32();
    args.x = x.view().f32();
    args.x_stride = cols;
    args.cols = cols;
    args.num_rows = 11;
    args.bias = weight.view().f32();
    args.out = results.data();
    args.out_stride = 13;
    args.num_outputs = 13;
    table->f32_panels(args);
    std::vector<float> row(static_cast<size_t>(cols));
    const auto keep = [&] { results.insert(results.end(), row.begin(), row.end()); };
    table->rms_norm(x.view().f32(), weight.view().f32(), cols, 1e-5F, row.data());
    keep();
    table->layer_norm(x.view().f32(), weight.view().f32(), x.view().f32(1), cols, 1e-5F,
                      row.data());
    keep();
    for (const Activation activation : all_activations()) {
      table->activate(activation, x.view().f32(), x.view().f32(1), cols, row.data());
      keep();
      table->activate(activation, x.view().f32(), nullptr, cols, row.data());
      keep();
    }
    table->add_scaled(row.data(), x.view().f32(2), 0.3F, cols);
    keep();
    table->softmax(x.view().f32(3), cols, row.data());
    keep();
    table->sigmoid(x.view().f32(4), cols, row.data());
    keep();
    table->gate(row.data(), 0.7F, cols);
    keep();
    table->clamp(row.data(), 8.0F, cols);
    keep();
    table->soft_cap(row.data(), 3.0F, cols);
    keep();
    table->rope_neox(row.data(), x.view().f32(), x.view().f32(1), cols / 2);
    keep();
    keep();
    results.push_back(static_cast<float>(table->argmax(row.data(), cols)));
    if (expected.empty()) expected = results;
    EXPECT_TRUE(same_bits(results, expected)) << table->name;
  }
}

TEST(ReferenceKernels, AttentionGivesTheSameBitsInEveryWidth) {
  const int64_t head_dim = 40;
  const int64_t num_keys = 50;
  std::vector<uint16_t> pages(static_cast<size_t>(4 * 2 * 16 * head_dim));
  Numbers numbers(4);
  for (auto& half : pages) half = f32_to_f16(numbers.unit());
  const std::vector<int32_t> block_table = {3, 0, 2, 1};
  const Buffer q = random_rows(7, head_dim, 5, 4.0F);
  std::vector<float> expected;
  for (const KernelTable* table : kernel_tables(Isa::reference)) {
    std::vector<const float*> queries;
    std::vector<int64_t> lo;
    std::vector<int64_t> hi;
    for (int64_t r = 0; r < 7; ++r) {
      queries.push_back(q.view().f32(r));
      lo.push_back(r);
      hi.push_back(num_keys - 6 + r);
    }
    std::vector<float> state(static_cast<size_t>(kMaxQueryRows * (2 + head_dim)));
    std::vector<float> scratch(static_cast<size_t>(kMaxQueryRows * kAttentionBlockKeys));
    AttentionTile args;
    args.pages = reinterpret_cast<const std::byte*>(pages.data());
    args.block_stride_bytes = static_cast<size_t>(2 * 2 * 16 * head_dim);
    args.block_table = block_table.data();
    args.block_tokens = 16;
    args.head_dim = head_dim;
    args.value_offset = 16 * head_dim;
    args.f16 = true;
    args.scale = 0.2F;
    args.soft_cap = 4.0F;
    args.num_rows = 7;
    args.q = queries.data();
    args.lo = lo.data();
    args.hi = hi.data();
    args.end = 512;
    args.max = state.data();
    args.sum = state.data() + kMaxQueryRows;
    args.out = state.data() + 2 * kMaxQueryRows;
    args.scratch = scratch.data();
    table->attend(args);
    if (expected.empty()) expected = state;
    EXPECT_TRUE(same_bits(state, expected));
  }
}

/// Rows quantised together, and where their parts are by the description of QuantizedRows.
struct Quantized {
  Quantized(const KernelTable& table, const Tensor& x)
      : num_rows(x.rows),
        num_blocks(x.cols / 32),
        high(static_cast<size_t>(x.rows * x.cols)),
        low(high.size()),
        has_low(kWideSteps * high.size() / 32),
        whole(table.needs_whole ? high.size() : 0),
        is_wide(table.has_wide_steps),
        scale(high.size() / 32),
        scaled_sum(high.size() / 32),
        negated_sums(3 * scale.size()) {
    for (int64_t r = 0; r < x.rows; ++r) {
      table.quantize_row(x.f32(r), r, rows());
    }
  }

  QuantizedRows rows() {
    QuantizedRows rows;
    rows.high = high.data();
    rows.low = low.data();
    rows.has_low = has_low.data();
    if (!whole.empty()) rows.whole = whole.data();
    rows.has_whole = !whole.empty();
    rows.wide = low.data();
    rows.wide_steps = has_low.data();
    rows.scale = scale.data();
    rows.scaled_sum = scaled_sum.data();
    rows.negated_sums = negated_sums.data();
    rows.cols = 32 * num_blocks;
    rows.num_rows = num_rows;
    return rows;
  }

  int64_t tile(int64_t row) const { return row / kTileRows * kTileRows; }
  int64_t height(int64_t row) const { return std::min(kTileRows, num_rows - tile(row)); }
  size_t block_at(int64_t row, int64_t block) const {
    return static_cast<size_t>(tile(row) * num_blocks + block * height(row) + row % kTileRows);
  }
  size_t at(int64_t row, int64_t col) const {
    return 32 * block_at(row, col / 32) + static_cast<size_t>(col % 32);
  }
  bool in_wide_step(int64_t row, int64_t col) const { return wide_at(row, col) < low.size(); }
  int32_t integer(int64_t row, int64_t col) const {
    if (!is_wide) return 128 * high[at(row, col)] + low[at(row, col)];
    const int wide = in_wide_step(row, col) ? low[wide_at(row, col)] : 0;
    return 128 * wide + high[at(row, col)];
  }
  /// A column's place in QuantizedRows::wide, or a place past its end.
  size_t wide_at(int64_t row, int64_t col) const {
    for (size_t i = 0; is_wide && i < kWideSteps; ++i) {
      const size_t step = kWideSteps * block_at(row, col / 32) + i;
      if (has_low[step] == col % 32 / 4) return 4 * step + static_cast<size_t>(col % 4);
    }
    return low.size();
  }
  /// What an integer counts.
  double unit(int64_t row, int64_t block) const {
    return double{scale[block_at(row, block)]} / (is_wide ? 1 : 128);
  }
  /// which: 0 for the block, 1 and 2 for its halves.
  int32_t negated_sum(int64_t row, int64_t block, int64_t which) const {
    return negated_sums[static_cast<size_t>(3 * tile(row) * num_blocks +
                                            (3 * block + which) * height(row) + row % kTileRows)];
  }

  int64_t num_rows;
  int64_t num_blocks;
  std::vector<int8_t> high;
  std::vector<int8_t> low;       ///< or QuantizedRows::wide
  std::vector<uint8_t> has_low;  ///< or QuantizedRows::wide_steps
  std::vector<int16_t> whole;    ///< empty where the table does not need it
  bool is_wide;
  std::vector<float> scale;
  std::vector<float> scaled_sum;
  std::vector<int32_t> negated_sums;
};

/// Where the two planes have numbers.
void expect_planes(const Quantized& q, int64_t row, int64_t col) {
  ASSERT_GE(q.high[q.at(row, col)], -127);
  ASSERT_GE(q.low[q.at(row, col)], -64);
  ASSERT_LE(q.low[q.at(row, col)], 63);
  if (q.has_low[q.block_at(row, col / 32)] == 0) {
    ASSERT_EQ(q.low[q.at(row, col)], 0);
  }
  if (!q.whole.empty()) {
    constexpr int kPlaces[] = {0, 2, 1, 3};
    const size_t at = q.at(row, col - col % 4) + kPlaces[col % 4];
    ASSERT_EQ(q.whole[at], q.integer(row, col));
  }
}

/// The same for wide steps, which have the largest numbers of their block.
void expect_wide_steps(const Quantized& q, const Tensor& x, int64_t row, int64_t block) {
  float largest = 0.0F;
  float largest_wide = 0.0F;
  for (int64_t col = 32 * block; col < 32 * block + 32; ++col) {
    const float size = std::abs(x.f32(row)[col]);
    largest = std::max(largest, size);
    const int high = q.high[q.at(row, col)];
    if (q.in_wide_step(row, col)) {
      largest_wide = std::max(largest_wide, size);
      ASSERT_GE(high, -64);
      ASSERT_LE(high, 63);
      ASSERT_LE(std::abs(q.integer(row, col)), 127 * 128 + 63);
    } else {
      ASSERT_GE(high, -127);
    }
  }
  ASSERT_EQ(largest_wide, largest);
}

void expect_quantised_row(const Quantized& q, const Tensor& x, int64_t row) {
  for (int64_t block = 0; block < q.num_blocks; ++block) {
    const float scale = q.scale[q.block_at(row, block)];
    const bool has_low = q.has_low[q.block_at(row, block)] != 0;
    // Half a step of the plane that is written, as the largest number is 127 steps of the high one;
    // with wide steps, half a step of its integers.
    const double half_step = 0.501 * double{scale} / (!q.is_wide && has_low ? 128 : 1);
    int32_t sums[2] = {};
    if (q.is_wide) expect_wide_steps(q, x, row, block);
    for (int64_t col = 32 * block; col < 32 * block + 32; ++col) {
      if (!q.is_wide) expect_planes(q, row, col);
      ASSERT_NEAR(q.unit(row, block) * q.integer(row, col), x.f32(row)[col], half_step) << col;
      sums[col / 16 % 2] += q.integer(row, col);
    }
    EXPECT_EQ(q.negated_sum(row, block, 0), -(sums[0] + sums[1]));
    EXPECT_EQ(q.negated_sum(row, block, 1), -sums[0]);
    EXPECT_EQ(q.negated_sum(row, block, 2), -sums[1]);
    EXPECT_EQ(q.scaled_sum[q.block_at(row, block)],
              static_cast<float>(q.unit(row, block)) * static_cast<float>(sums[0] + sums[1]));
  }
}

void expect_quantised_rows(const KernelTable& table, int64_t num_rows) {
  SCOPED_TRACE(std::string(table.name) + " " + std::to_string(num_rows));
  const Buffer buffer = uneven_rows(num_rows, 96, 6, 100.0F);
  const Tensor x = buffer.view();
  const int64_t last = num_rows - 1;
  for (int64_t col = 32; col < 64; ++col) x.f32(last)[col] = 0.0F;
  x.f32(last)[70] = -1000.0F;
  const Quantized q(table, x);
  for (int64_t row = 0; row < num_rows; ++row) expect_quantised_row(q, x, row);
  if (q.is_wide) {
    EXPECT_TRUE(q.in_wide_step(last, 70)) << "the block's largest number";
    EXPECT_LT(q.integer(last, 70), -127);
  } else {
    EXPECT_EQ(q.high[q.at(last, 70)], -127);
    EXPECT_EQ(q.has_low[q.block_at(last, 2)], 1) << "the block with the row's largest number";
    EXPECT_EQ(q.has_low[q.block_at(last, 1)], 0);
  }
  EXPECT_EQ(q.scale[q.block_at(last, 1)], 0.0F);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    x.f32(last)[5] = bad;
    const Quantized poisoned(table, x);
    const size_t block = poisoned.block_at(last, 0);
    EXPECT_TRUE(std::isnan(poisoned.scale[block]));
    EXPECT_TRUE(std::isnan(poisoned.scaled_sum[block]));
    EXPECT_EQ(poisoned.negated_sum(last, 0, 0), 0) << "garbage would overflow the sums of a row";
    EXPECT_EQ(poisoned.integer(last, 5), 0);
    EXPECT_FALSE(std::isnan(poisoned.scale[poisoned.block_at(last, 1)]));
  }
  for (int64_t col = 0; col < 32; ++col) x.f32(last)[col] = 1e-38F;
  const Quantized tiny(table, x);
  EXPECT_EQ(tiny.scale[tiny.block_at(last, 0)], 0.0F);
}

TEST(QuantizeRow, KeepsItsBitsAndItsSums) {
  int num_tables = 0;
  for (const Isa isa : available_isas()) {
    const KernelTable& table = kernel_table(isa);
    if (table.quantize_row == nullptr) continue;
    for (const int64_t num_rows : {1, 3, 8, 21}) expect_quantised_rows(table, num_rows);
    ++num_tables;
  }
  std::cout << num_tables << " instruction sets\n";
}

/// What a table's kernels give for packed weights and rows.
std::vector<float> run_panels(const KernelTable& table, const CpuMatrix& matrix, const Tensor& x) {
  Quantized q(table, x);
  const Buffer out(DType::f32, x.rows, matrix.rows());
  const auto view = matrix.panels(0, matrix.num_panels(), nullptr);
  PanelRun run;
  run.panels = reinterpret_cast<const uint8_t*>(view.data);
  run.panel_bytes = view.panel_bytes;
  run.x = q.rows();
  run.num_rows = x.rows;
  run.num_outputs = matrix.rows();
  run.out = out.view().f32();
  run.out_stride = matrix.rows();
  table.int_panels[static_cast<size_t>(*matrix.panel_format())](run);
  return to_vector(out.view());
}

TEST(IntegerPanels, TablesOfOneIsaGiveTheSameBits) {
  ThreadPool pool(1);
  WeightMemory memory;
  int num_compared = 0;
  for (const Isa isa : available_isas()) {
    const auto tables = kernel_tables(isa);
    if (tables[0]->int_panels == nullptr) continue;
    for (const FormatTraits& format : all_formats()) {
      for (const Codes codes :
           {Codes::random, Codes::all_ones, Codes::all_zeros, Codes::only_top_bits}) {
        const auto data = made_up_blocks(format.format, 40, 768, 8, codes);
        const auto matrix = CpuMatrix::pack({format.format, 40, 768, data, {}, "w"}, pool,
                                            packing_for(*tables[0]), memory);
        ASSERT_TRUE(matrix.ok());
        if ((*matrix)->storage() != MatrixStorage::packed) continue;
        const Buffer x = uneven_rows(13, 768, 9);
        for (int64_t i = 0; i < 768; ++i) x.view().f32(1)[i] = 1.0F;
        for (int64_t i = 0; i < 768; ++i) x.view().f32(2)[i] = i / 2 % 2 == 0 ? 1.0F : -1.0F;
        if (*(*matrix)->panel_format() >= PanelFormat::f16) continue;
        const auto expected = run_panels(*tables[0], **matrix, x.view());
        for (size_t i = 1; i < tables.size(); ++i) {
          EXPECT_TRUE(same_bits(run_panels(*tables[i], **matrix, x.view()), expected))
              << format.name << " on " << tables[i]->name;
          ++num_compared;
        }
      }
    }
  }
  std::cout << num_compared << " products compared\n";
}

}  // namespace
}  // namespace headrace
