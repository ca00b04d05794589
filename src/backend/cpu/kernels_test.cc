// Kernels by themselves: the widths of the reference agree, activations quantise as promised.
#include <gtest/gtest.h>

#include <limits>

#include "backend/cpu/kernels/tables.h"
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
    FloatPanel args;
    args.panel = panel.view().f32();
    args.x = x.view().f32();
    args.x_stride = cols;
    args.cols = cols;
    args.num_rows = 11;
    args.bias = weight.view().f32();
    args.out = results.data();
    args.out_stride = 13;
    args.num_lanes = 13;
    table->float_panel(args);
    std::vector<float> row(static_cast<size_t>(cols));
    const auto keep = [&] { results.insert(results.end(), row.begin(), row.end()); };
    table->rms_norm(x.view().f32(), weight.view().f32(), cols, 1e-5F, row.data());
    keep();
    table->silu_mul(x.view().f32(), x.view().f32(1), cols, row.data());
    keep();
    table->gelu_tanh_mul(x.view().f32(), x.view().f32(1), cols, row.data());
    keep();
    table->soft_cap(row.data(), 3.0F, cols);
    keep();
    table->rope_neox(row.data(), x.view().f32(), x.view().f32(1), cols / 2);
    keep();
    table->rope_interleaved(row.data(), x.view().f32(), x.view().f32(1), cols / 2);
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

/// One row quantised by itself.
struct QuantizedRow {
  QuantizedRow(const KernelTable& table, ActivationForm form, std::span<const float> x)
      : high(x.size()),
        low(x.size()),
        scale(x.size() / 32),
        scaled_sum(x.size() / 32),
        sums(x.size() / 16) {
    const bool two_planes = form == ActivationForm::int15;
    const QuantizedRows rows{high.data(),  two_planes ? low.data() : nullptr,
                             scale.data(), scaled_sum.data(),
                             sums.data(),  static_cast<int64_t>(x.size())};
    table.forms[static_cast<size_t>(form)].quantize_row(x.data(), 0, rows);
    for (size_t i = 0; i < x.size(); ++i) {
      integers.push_back(two_planes ? 128 * high[i] + low[i] : high[i]);
    }
  }

  std::vector<int8_t> high;
  std::vector<int8_t> low;
  std::vector<float> scale;
  std::vector<float> scaled_sum;
  std::vector<int32_t> sums;
  std::vector<int32_t> integers;
};

void expect_quantised_rows(const KernelTable& table, ActivationForm form) {
  SCOPED_TRACE(std::string(table.name) + (form == ActivationForm::int8 ? " int8" : " int15"));
  std::vector<float> x(96);
  Numbers numbers(6);
  for (float& value : x) value = 100.0F * numbers.unit();
  for (size_t i = 32; i < 64; ++i) x[i] = 0.0F;
  x[70] = -1000.0F;
  const QuantizedRow q(table, form, x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_GE(q.high[i], -127);
    ASSERT_GE(q.low[i], -64);
    ASSERT_LE(q.low[i], 63);
    ASSERT_NEAR(double{q.scale[i / 32]} * q.integers[i], x[i], 0.501 * q.scale[i / 32]) << i;
  }
  EXPECT_EQ(q.high[70], -127);
  for (size_t half = 0; half < 6; ++half) {
    int32_t sum = 0;
    for (size_t i = 16 * half; i < 16 * half + 16; ++i) sum += q.integers[i];
    EXPECT_EQ(q.sums[half], sum);
  }
  EXPECT_EQ(q.scale[1], 0.0F);
  for (size_t b = 0; b < 3; ++b) {
    EXPECT_EQ(q.scaled_sum[b], q.scale[b] * static_cast<float>(q.sums[2 * b] + q.sums[2 * b + 1]));
  }
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    x[5] = bad;
    const QuantizedRow poisoned(table, form, x);
    EXPECT_TRUE(std::isnan(poisoned.scale[0]));
    EXPECT_TRUE(std::isnan(poisoned.scaled_sum[0]));
    EXPECT_EQ(poisoned.sums[0], 0) << "garbage would overflow the sums of a row";
    EXPECT_EQ(poisoned.high[5], 0);
    EXPECT_FALSE(std::isnan(poisoned.scale[1]));
  }
  for (size_t i = 0; i < 32; ++i) x[i] = 1e-38F;
  EXPECT_EQ(QuantizedRow(table, form, x).scale[0], 0.0F);
}

TEST(QuantizeRow, KeepsItsBitsAndItsSums) {
  int num_forms = 0;
  for (const Isa isa : available_isas()) {
    const KernelTable& table = kernel_table(isa);
    for (const auto form : {ActivationForm::int8, ActivationForm::int15}) {
      if (table.forms[static_cast<size_t>(form)].quantize_row == nullptr) continue;
      expect_quantised_rows(table, form);
      ++num_forms;
    }
  }
  std::cout << num_forms << " forms on all instruction sets\n";
}

}  // namespace
}  // namespace headrace
