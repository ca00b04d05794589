// sample_rows on every instruction set against the plain answer in double precision: odd sizes,
// ties, broken rows, edits; and the same bits whatever the threads and the company.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/test_tensors.h"
#include "tests/infinity.h"

namespace headrace {
namespace {

using namespace backend_test;

using test::kInf;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Around the sizes of blocks, stripes and chunks, and two vocabularies.
const std::vector<int64_t> kSizes = {1,    5,    16,   17,   255,   256,   257,   2047,
                                     2049, 8191, 8192, 8193, 16384, 20000, 49152, 262144};

enum class Shape { even, steep, ties, all_equal, one_finite, clustered, huge, num_shapes };

std::vector<float> made_up_row(int64_t size, Shape shape, uint64_t seed) {
  Numbers numbers(seed);
  std::vector<float> row(static_cast<size_t>(size));
  for (float& one : row) {
    one = 8.0F * numbers.unit();
    if (shape == Shape::steep) one = -std::log(1.0F + 1e-6F + numbers.unit()) * 4.0F;
    if (shape == Shape::ties) one = static_cast<float>(numbers.below(5));
    if (shape == Shape::all_equal) one = -2.5F;
    if (shape == Shape::one_finite) one = -kInf;
    if (shape == Shape::huge) one = 3e38F * numbers.unit();
    if (shape != Shape::all_equal && numbers.below(20) == 0) one = -kInf;
  }
  const auto at = static_cast<size_t>(numbers.below(size));
  if (shape == Shape::clustered) {
    for (size_t i = at; i < std::min(at + 900, row.size()); ++i) row[i] += 20.0F;
  }
  row[at] = shape == Shape::all_equal ? -2.5F : std::max(row[at], 1.0F);
  return row;
}

struct Expected {
  std::vector<TokenLogit> order;  ///< above -Inf, most likely first
  double sum(double temperature) const {
    double total = 0;
    for (const TokenLogit& one : order) {
      total += std::exp((double{one.logit} - double{order[0].logit}) / temperature);
    }
    return total;
  }
};

Expected expected_of(std::span<const float> row) {
  Expected out;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] > -kInf) out.order.push_back({static_cast<TokenId>(i), row[i]});
  }
  std::stable_sort(out.order.begin(), out.order.end(),
                   [](const TokenLogit& a, const TokenLogit& b) { return a.logit > b.logit; });
  return out;
}

void expect_top(std::span<const TokenLogit> found, const Expected& expected, int32_t wanted) {
  ASSERT_EQ(found.size(), std::min(static_cast<size_t>(wanted), expected.order.size()));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].id, expected.order[i].id) << i;
    ASSERT_EQ(found[i].logit, expected.order[i].logit) << i;
  }
}

/// The share of the draw must lie in the token's interval, but for rounding.
void expect_drawn(std::span<const float> row, const RowQuery& query, const RowSummary& found) {
  ASSERT_GE(found.drawn, 0);
  ASSERT_LT(found.drawn, std::ssize(row));
  ASSERT_GT(row[static_cast<size_t>(found.drawn)], -kInf);
  ASSERT_EQ(found.drawn_logit, row[static_cast<size_t>(found.drawn)]);
  double before = 0;
  double after = 0;
  double total = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double distance = double{row[i]} - double{found.largest};
    total += std::exp(distance / static_cast<double>(query.temperature));
    if (std::cmp_less(i, found.drawn)) before = total;
    if (std::cmp_equal(i, found.drawn)) after = total;
  }
  ASSERT_LE(before, (query.draw + 2e-6) * total);
  ASSERT_GE(after, (query.draw - 2e-6) * total);
}

class RowSamplerOnIsa : public testing::TestWithParam<Isa> {
 protected:
  RowSummary sample(const std::vector<float>& row, const RowQuery& query) {
    std::copy(row.begin(), row.end(), buffer_of(std::ssize(row)).f32());
    RowSummary out;
    backend_->sample_rows(view_, std::span(&query, 1), std::span(&out, 1));
    return out;
  }

  Tensor buffer_of(int64_t size) {
    buffer_ = Buffer(DType::f32, 1, size);
    return view_ = buffer_.view();
  }

  std::unique_ptr<Backend> backend_ = backend_of(GetParam(), 3);
  Buffer buffer_;
  Tensor view_;
};

TEST_P(RowSamplerOnIsa, AnswersThePlainQuestion) {
  Numbers numbers(1);
  for (const int64_t size : kSizes) {
    for (int shape = 0; shape < static_cast<int>(Shape::num_shapes); ++shape) {
      SCOPED_TRACE(testing::Message() << "size " << size << " shape " << shape);
      const auto row = made_up_row(size, static_cast<Shape>(shape), numbers.bits());
      const Expected expected = expected_of(row);
      const float temperature = std::vector<float>{1, 0.8F, 0.05F, 30}[numbers.below(4)];
      const RowQuery query{.edits = {},
                           .wants_log_sum_exp = true,
                           .num_model_top = static_cast<int32_t>(numbers.below(30)),
                           .num_top = std::vector<int32_t>{0, 1, 40, 256}[numbers.below(4)],
                           .temperature = temperature,
                           .draw = to_unit_interval(numbers.bits())};
      const RowSummary found = sample(row, query);
      ASSERT_EQ(found.fault, LogitFault::none);
      ASSERT_EQ(found.best, expected.order[0].id);
      ASSERT_EQ(found.largest, expected.order[0].logit);
      expect_top(found.top, expected, query.num_top);
      expect_top(found.model_top, expected, query.num_model_top);
      const double log_sum_exp = double{found.largest} + std::log(expected.sum(1));
      ASSERT_NEAR(found.log_sum_exp, log_sum_exp, 1e-6 * std::max(1.0, std::abs(log_sum_exp)));
      const double total = expected.sum(double{temperature});
      ASSERT_NEAR(found.total_weight, total, 1e-6 * total);
      expect_drawn(row, query, found);
    }
  }
}

TEST_P(RowSamplerOnIsa, ExtremeTemperatures) {
  for (const int64_t size : {300, 20000}) {
    auto row = made_up_row(size, Shape::even, 2);
    row[217] = 50;
    row[218] = 49.9F;
    for (const float temperature : {std::numeric_limits<float>::denorm_min(), 1e-30F, 1e-4F}) {
      for (const double draw : {0.0, 0.5, 1.0 - 0x1.0p-53}) {
        const RowSummary found = sample(row, {.temperature = temperature, .draw = draw});
        EXPECT_EQ(found.drawn, 217) << temperature;
        EXPECT_EQ(found.total_weight, 1.0);
      }
    }
    const float largest = std::numeric_limits<float>::max();
    const RowSummary found = sample(row, {.temperature = largest, .draw = 1.0 - 0x1.0p-53});
    const auto count = static_cast<double>(expected_of(row).order.size());
    EXPECT_NEAR(found.total_weight, count, 1e-6 * count);
    EXPECT_EQ(
        found.drawn,
        std::distance(
            row.begin(),
            std::find_if(row.rbegin(), row.rend(), [](float x) { return x > -kInf; }).base()) -
            1);
  }
}

TEST_P(RowSamplerOnIsa, TheFirstDrawIsTheFirstTokenThatMayBeChosen) {
  std::vector<float> row(20000, -kInf);
  row[9000] = 1;
  row[9001] = 2;
  EXPECT_EQ(sample(row, {.temperature = 1, .draw = 0}).drawn, 9000);
}

TEST_P(RowSamplerOnIsa, BrokenRowsAreFaultsWhereverTheyBreak) {
  for (const int64_t size : {1, 7, 16, 300, 8192, 20001}) {
    for (const int64_t at : {int64_t{0}, size / 3, size / 2, size - 1}) {
      for (const float bad : {kNaN, -kNaN, kInf}) {
        auto row = made_up_row(size, Shape::even, 3);
        row[static_cast<size_t>(at)] = bad;
        std::vector<LogitEdit> edits = {{.id = static_cast<TokenId>(at), .bias = -kInf},
                                        {.id = static_cast<TokenId>((at + 1) % size), .bias = 1}};
        if (size == 1) edits.pop_back();
        for (const bool with_edits : {false, true}) {
          RowQuery query{.wants_log_sum_exp = true,
                         .num_model_top = 3,
                         .num_top = 20,
                         .temperature = 1,
                         .draw = 0.5};
          if (with_edits) query.edits = edits;
          const RowSummary found = sample(row, query);
          ASSERT_EQ(found.fault, bad > 0 ? LogitFault::infinite : LogitFault::not_a_number);
          ASSERT_EQ(found.fault_token, at);
          ASSERT_TRUE(found.top.empty());
          ASSERT_TRUE(same_bits(to_vector(view_), row)) << "edits are undone";
        }
      }
    }
    const RowSummary found = sample(std::vector<float>(static_cast<size_t>(size), -kInf),
                                    {.num_top = 5, .temperature = 1, .draw = 0.5});
    EXPECT_EQ(found.fault, LogitFault::none_finite);
  }
}

TEST_P(RowSamplerOnIsa, EditsComeBetweenTheTwoViewsOfARow) {
  Numbers numbers(4);
  for (const int64_t size : {40, 5000, 49152}) {
    const auto row = made_up_row(size, Shape::even, numbers.bits());
    const Expected before = expected_of(row);
    std::vector<LogitEdit> edits;
    for (TokenId id = 0; id < size; id += static_cast<TokenId>(1 + numbers.below(7))) {
      edits.push_back({.id = id,
                       .bias = numbers.below(4) == 0 ? -kInf : 3 * numbers.unit(),
                       .repetition = 1.0F + numbers.unit() / 2,
                       .penalty = numbers.unit()});
    }
    std::swap(edits.front(), edits.back());
    auto changed = row;
    for (const LogitEdit& one : edits) {
      float& logit = changed[static_cast<size_t>(one.id)];
      logit = edited_logit(one, logit);
    }
    const Expected after = expected_of(changed);
    const RowQuery query{.edits = edits,
                         .wants_log_sum_exp = true,
                         .num_model_top = 20,
                         .num_top = 30,
                         .temperature = 0.7F,
                         .draw = 0.3};
    const RowSummary found = sample(row, query);
    expect_top(found.model_top, before, 20);
    expect_top(found.top, after, 30);
    EXPECT_EQ(found.best, after.order[0].id);
    EXPECT_NEAR(found.log_sum_exp, double{before.order[0].logit} + std::log(before.sum(1)), 1e-5);
    EXPECT_NEAR(found.total_weight, after.sum(double{0.7F}), 1e-6 * found.total_weight);
    expect_drawn(changed, query, found);
    EXPECT_TRUE(same_bits(to_vector(view_), changed)) << "read_row sees the edits";
    for (const LogitEdit& one : edits) {
      EXPECT_EQ(one.original, row[static_cast<size_t>(one.id)]);
    }
  }
}

TEST_P(RowSamplerOnIsa, EditsThatLeaveNothingAreNoFaultOfTheModel) {
  std::vector<LogitEdit> edits = {{.id = 1, .bias = -kInf}};
  RowQuery query{.edits = edits, .num_top = 5, .temperature = 1, .draw = 0.5};
  RowSummary found = sample({-kInf, 3, -kInf}, query);
  EXPECT_EQ(found.fault, LogitFault::none);
  EXPECT_EQ(found.largest, -kInf);
  EXPECT_TRUE(found.top.empty());
  edits = {{.id = 1, .repetition = 0.001F}};
  found = sample({0, 3e38F, -kInf}, query);
  EXPECT_EQ(found.fault, LogitFault::none);
  EXPECT_EQ(found.largest, kInf);
}

TEST_P(RowSamplerOnIsa, NeitherThreadsNorCompanyChangeABit) {
  constexpr int64_t kRows = 37;  // more than one region's
  for (const int64_t cols : {int64_t{777}, int64_t{30000}}) {
    Numbers numbers(5);
    const Buffer rows(DType::f32, kRows, cols);
    std::vector<std::vector<LogitEdit>> edits(kRows);
    std::vector<RowQuery> queries(kRows);
    for (int64_t r = 0; r < kRows; ++r) {
      const auto i = static_cast<size_t>(r);
      const auto shape = static_cast<Shape>(numbers.below(static_cast<int>(Shape::num_shapes)));
      const auto row = made_up_row(cols, shape, numbers.bits());
      std::copy(row.begin(), row.end(), rows.view().f32(r));
      for (TokenId id = 0; id < 3 * numbers.below(3); ++id) edits[i].push_back({id, 1, 2, 3});
      queries[i] = {.edits = edits[i],
                    .wants_log_sum_exp = numbers.below(2) == 0,
                    .num_model_top = static_cast<int32_t>(numbers.below(2) * 20),
                    .num_top = static_cast<int32_t>(numbers.below(2) * 60),
                    .temperature = 0.5F + static_cast<float>(numbers.below(2)),
                    .draw = to_unit_interval(numbers.bits())};
      if (r == 11) rows.view().f32(r)[cols / 2] = kNaN;
    }
    const auto same = [&](const RowSummary& a, const RowSummary& b, size_t row) {
      const auto same_list = [](std::span<const TokenLogit> x, std::span<const TokenLogit> y) {
        return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size_bytes()) == 0;
      };
      EXPECT_EQ(a.fault, b.fault) << row;
      EXPECT_EQ(a.best, b.best) << row;
      EXPECT_EQ(a.log_sum_exp, b.log_sum_exp) << row;
      EXPECT_EQ(a.total_weight, b.total_weight) << row;
      EXPECT_EQ(a.drawn, b.drawn) << row;
      EXPECT_TRUE(same_list(a.top, b.top)) << row;
      EXPECT_TRUE(same_list(a.model_top, b.model_top)) << row;
    };
    const auto copy = [&] {
      Buffer out(DType::f32, kRows, cols);
      std::copy_n(rows.view().f32(), kRows * cols, out.view().f32());
      return out;
    };
    const auto first = backend_of(GetParam(), 1);
    const Buffer expected_rows = copy();
    std::vector<RowSummary> expected(kRows);
    first->sample_rows(expected_rows.view(), queries, expected);
    EXPECT_EQ(expected[11].fault, LogitFault::not_a_number);
    for (const int threads : {2, 3, 4}) {
      const auto backend = backend_of(GetParam(), threads);
      const Buffer together = copy();
      std::vector<RowSummary> found(kRows);
      backend->sample_rows(together.view(), queries, found);
      for (size_t i = 0; i < kRows; ++i) same(found[i], expected[i], i);
      const Buffer alone = copy();
      for (size_t i = 0; i < kRows; ++i) {
        RowSummary one;
        backend->sample_rows(alone.view().slice_rows(static_cast<int64_t>(i), 1),
                             std::span(queries).subspan(i, 1), std::span(&one, 1));
        same(one, expected[i], i);
      }
    }
  }
}

TEST_P(RowSamplerOnIsa, BrokenQueriesAreInternalErrors) {
  const Buffer row = random_rows(1, 10, 6);
  const auto ask = [&](const RowQuery& query) {
    RowSummary out;
    backend_->sample_rows(row.view(), std::span(&query, 1), std::span(&out, 1));
  };
  LogitEdit edit{.id = 10};
  EXPECT_THROW(ask({.edits = std::span(&edit, 1)}), InternalError);
  EXPECT_THROW(ask({.num_top = kMaxTopLogits + 1}), InternalError);
  EXPECT_THROW(ask({.draw = 0.5}), InternalError) << "no temperature";
  EXPECT_THROW(ask({.temperature = 1, .draw = 1.0}), InternalError);
}

INSTANTIATE_TEST_SUITE_P(Cpu, RowSamplerOnIsa, testing::ValuesIn(available_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

TEST(KernelTables, EveryOneCanSample) {
  for (const Isa isa : available_isas()) {
    for (const KernelTable* table : kernel_tables(isa)) {
      EXPECT_NE(table->sampling, nullptr) << table->name;
    }
  }
}

TEST(ReferenceKernels, SamplingGivesTheSameBitsInEveryWidth) {
  const auto row = made_up_row(5001, Shape::even, 7);
  const float largest = *std::max_element(row.begin(), row.end());
  std::vector<double> expected;
  for (const KernelTable* table : kernel_tables(Isa::reference)) {
    const SamplingKernels& kernels = *table->sampling;
    std::vector<float> blocks(20);
    std::vector<float> lanes(48);
    std::vector<TokenLogit> tokens(5001);
    int64_t count = 0;
    std::vector<double> found;
    found.push_back(kernels.chunk_maxima(row.data(), 5001, blocks.data(), lanes.data()));
    found.push_back(kernels.exp_sum(row.data(), 5001, largest, 0.7F));
    const double point = found.back() / 3;
    found.push_back(static_cast<double>(kernels.exp_find(row.data(), 5001, largest, 0.7F, point)));
    kernels.collect_above(row.data(), 0, 5001, blocks.data(), 6.0F, tokens.data(), 5001, &count);
    found.push_back(static_cast<double>(count));
    for (int64_t i = 0; i < count; ++i) found.push_back(tokens[static_cast<size_t>(i)].id);
    found.insert(found.end(), blocks.begin(), blocks.end());
    found.insert(found.end(), lanes.begin(), lanes.end());
    if (expected.empty()) expected = found;
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace headrace
