// Searching for the largest outputs of a matrix in two planes gives them bit for bit, whatever the
// weights and the row are, and leaves most of a matrix out where that is possible.
#include "backend/cpu/top_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/test_tensors.h"
#include "tests/infinity.h"

namespace headrace {
namespace {

using namespace backend_test;

using test::kInf;

/// Rows of q8_0.
struct Head {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<std::byte> data;

  int64_t blocks() const { return cols / 32; }
  std::byte* block(int64_t row, int64_t index) {
    return data.data() + static_cast<size_t>((row * blocks() + index) * 34);
  }
  void set_scale(int64_t row, int64_t index, float d) {
    const uint16_t half = f32_to_f16(d);
    std::memcpy(block(row, index), &half, 2);
  }
  void set_code(int64_t row, int64_t col, int code) {
    block(row, col / 32)[2 + col % 32] = static_cast<std::byte>(code);
  }
};

Head random_head(int64_t rows, int64_t cols, uint64_t seed) {
  Head head{rows, cols, std::vector<std::byte>(static_cast<size_t>(rows * cols / 32 * 34))};
  Numbers numbers(seed);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < cols; ++k) {
      head.set_code(r, k, static_cast<int>(numbers.below(256)) - 128);
    }
    for (int64_t b = 0; b < head.blocks(); ++b) {
      head.set_scale(r, b,
                     0.01F * (1.5F + numbers.unit()) * (numbers.below(2) != 0 ? 1.0F : -1.0F));
    }
  }
  return head;
}

/// Both ways of packing it, and what they are searched with.
struct Packed {
  explicit Packed(const KernelTable& table, const Head& head, int threads = 3)
      : context(table, threads), search(context), whole(pack(head, false)), cut(pack(head, true)) {}

  std::unique_ptr<CpuMatrix> pack(const Head& head, bool finds_top) {
    WeightView view{Format::q8_0, head.rows, head.cols, head.data, {}, "head"};
    view.finds_top = finds_top;
    return CpuMatrix::pack(view, context.pool, Packing{}, memory).value();
  }

  std::vector<float> all(const CpuMatrix& matrix, const Tensor& x) {
    Buffer out(DType::f32, x.rows, matrix.rows());
    const LinearTask task{&matrix, {}, out.view(), {}, scale};
    cpu_linear(context, x, std::span(&task, 1));
    return to_vector(out.view());
  }

  /// Nothing: the search said no.
  std::optional<std::vector<float>> top(const Tensor& x, int32_t num_top) {
    Buffer out(DType::f32, x.rows, cut->rows());
    if (!search.run(x, {cut.get(), {}, out.view(), {}, scale}, num_top)) return std::nullopt;
    return to_vector(out.view());
  }

  WeightMemory memory;
  CpuContext context;
  TopSearch search;
  std::unique_ptr<CpuMatrix> whole;
  std::unique_ptr<CpuMatrix> cut;
  float scale = 1.0F;  ///< LinearTask::scale
};

/// Every table with packed integers.
std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> out;
  for (const Isa isa : available_isas()) {
    for (const KernelTable* table : kernel_tables(isa)) {
      if (table->int_panels != nullptr) out.push_back(table);
    }
  }
  return out;
}

/// How many outputs were left out; all others, and those that count, are the same bits.
int64_t check_top(const std::vector<float>& found, const std::vector<float>& all, int32_t num_top) {
  std::vector<float> sorted(all);
  const auto nth = sorted.begin() + num_top - 1;
  std::nth_element(sorted.begin(), nth, sorted.end(), std::greater<>());
  int64_t left_out = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (same_bits({&found[i], 1}, {&all[i], 1})) continue;
    EXPECT_EQ(found[i], -kInf) << i;
    EXPECT_LT(all[i], *nth) << i;
    ++left_out;
  }
  return left_out;
}

/// A search where the pauses after useless ones are over.
std::vector<float> search_at_last(Packed& packed, const Tensor& x, int32_t num_top) {
  for (int call = 0; call < 200; ++call) {
    if (auto found = packed.top(x, num_top)) return *found;
  }
  ADD_FAILURE() << "no search in 200 calls";
  return packed.all(*packed.cut, x);
}

TEST(TopSearch, PlanesMultiplyAsWholeCodes) {
  for (const KernelTable* table : tables()) {
    SCOPED_TRACE(table->name);
    for (const int64_t cols : {32, 96, 640}) {
      const Head head = random_head(149, cols, 1);
      Packed packed(*table, head);
      for (const int64_t rows : {1, 2, 7, 8, 9, 33, 70}) {
        const Buffer x = uneven_rows(rows, cols, 2);
        EXPECT_TRUE(
            same_bits(packed.all(*packed.whole, x.view()), packed.all(*packed.cut, x.view())))
            << rows << " x " << cols;
      }
      std::vector<float> whole(static_cast<size_t>(cols));
      std::vector<float> cut(whole);
      for (int64_t r = 0; r < head.rows; ++r) {
        packed.whole->decode_row(r, whole.data());
        packed.cut->decode_row(r, cut.data());
        ASSERT_TRUE(same_bits(whole, cut)) << r;
      }
    }
  }
}

TEST(TopSearch, MemoryIsThatOfWholeCodesAndTheBounds) {
  const Packed packed(*tables().front(), random_head(160, 64, 1));
  EXPECT_EQ(packed.cut->linear_bytes(), packed.whole->bytes());
  EXPECT_EQ(packed.whole->top_bytes(), packed.whole->bytes());
  EXPECT_LT(packed.cut->top_bytes(), packed.cut->linear_bytes());
  // A byte a block, two floats a row.
  EXPECT_EQ(packed.cut->bytes(), packed.whole->bytes() + 160 * (2 + 8));
}

TEST(TopSearch, FindsTheLargestOfRandomRows) {
  for (const KernelTable* table : tables()) {
    SCOPED_TRACE(table->name);
    Packed packed(*table, random_head(2005, 96, 3));
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Buffer x = seed % 2 == 0 ? random_rows(1, 96, seed) : uneven_rows(1, 96, seed, 30.0F);
      const auto all = packed.all(*packed.whole, x.view());
      for (const int32_t num_top : {1, 2, 40, 256}) {
        check_top(search_at_last(packed, x.view(), num_top), all, num_top);
      }
    }
  }
}

TEST(TopSearch, LeavesOutWhatCannotBeAmongTheLargest) {
  // One row of a thousand stands out.
  Head head = random_head(16'000, 640, 4);
  const Buffer x = random_rows(1, 640, 5);
  for (int64_t r = 7; r < head.rows; r += 1000) {
    for (int64_t k = 0; k < head.cols; ++k) {
      head.set_code(r, k, static_cast<int>(std::lround(127.0F * x.view().f32()[k])));
    }
    for (int64_t b = 0; b < head.blocks(); ++b) head.set_scale(r, b, 0.01F);
  }
  for (const KernelTable* table : tables()) {
    SCOPED_TRACE(table->name);
    Packed packed(*table, head);
    const auto all = packed.all(*packed.whole, x.view());
    for (const int32_t num_top : {1, 16}) {
      const auto found = packed.top(x.view(), num_top);
      ASSERT_TRUE(found);
      EXPECT_GT(check_top(*found, all, num_top), 15'000);
      EXPECT_GE(packed.search.panels_computed(), num_top == 1 ? 1 : 16);
      EXPECT_LT(packed.search.panels_computed(), 60);
    }
  }
}

TEST(TopSearch, TiesAreAllThere) {
  // All rows are one of three, so that a third of all outputs is the largest.
  const Head three = random_head(3, 64, 6);
  Head head = random_head(1000, 64, 6);
  for (int64_t r = 0; r < head.rows; ++r) {
    std::copy_n(three.data.begin() + r % 3 * 68, 68, head.data.begin() + r * 68);
  }
  for (const KernelTable* table : tables()) {
    Packed packed(*table, head);
    const Buffer x = uneven_rows(1, 64, 7);
    const auto all = packed.all(*packed.whole, x.view());
    for (const int32_t num_top : {1, 5, 250}) {
      check_top(search_at_last(packed, x.view(), num_top), all, num_top);
    }
  }
}

TEST(TopSearch, SaysNoWhereScalesMakeOutputsEqual) {
  for (const KernelTable* table : tables()) {
    SCOPED_TRACE(table->name);
    Packed packed(*table, random_head(2005, 96, 3));
    const Buffer x = random_rows(1, 96, 4);
    for (const float scale : {0.3F, 2.0F, -0.5F, 0.0F}) {
      packed.scale = scale;
      for (int call = 0; call < 200; ++call) EXPECT_FALSE(packed.top(x.view(), 1));
    }
    packed.scale = 0.0625F;
    const auto all = packed.all(*packed.whole, x.view());
    check_top(search_at_last(packed, x.view(), 5), all, 5);
  }
}

TEST(TopSearch, CloseOutputsAreToldApart) {
  // Neighbours differ by one step of one code, which only the lower bits show.
  Head head = random_head(4000, 320, 8);
  for (int64_t r = 1; r < head.rows; ++r) {
    std::copy_n(head.data.begin(), 340, head.data.begin() + r * 340);
    head.set_code(r, r % 320, static_cast<int>(r % 8) - 4);
  }
  for (const KernelTable* table : tables()) {
    Packed packed(*table, head);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const Buffer x = random_rows(1, 320, seed);
      const auto all = packed.all(*packed.whole, x.view());
      for (const int32_t num_top : {1, 3, 64}) {
        check_top(search_at_last(packed, x.view(), num_top), all, num_top);
      }
    }
  }
}

TEST(TopSearch, ExtremeNumbers) {
  for (const KernelTable* table : tables()) {
    SCOPED_TRACE(table->name);
    // The largest codes and scales, the smallest scales, and zeros.
    Head head = random_head(1600, 64, 9);
    for (int64_t r = 0; r < head.rows; ++r) {
      for (int64_t k = 0; k < head.cols && r % 5 == 0; ++k) {
        head.set_code(r, k, (r + k) % 2 == 0 ? -128 : 127);
      }
      constexpr float kScales[] = {65504.0F, -65504.0F, 6e-8F, 0.0F, -0.0F, 1.0F, 3e-5F};
      for (int64_t b = 0; b < 2; ++b) head.set_scale(r, b, kScales[(r + b) % 7]);
    }
    Packed packed(*table, head);
    for (const float size : {1e-25F, 1e-19F, 1e-10F, 1.0F, 1e10F, 1e18F}) {
      const Buffer x = uneven_rows(1, 64, 10, size);
      const auto all = packed.all(*packed.whole, x.view());
      for (const int32_t num_top : {1, 40}) {
        check_top(search_at_last(packed, x.view(), num_top), all, num_top);
      }
    }
  }
}

TEST(TopSearch, SaysNoWhereItHasNoBounds) {
  const KernelTable& table = *tables().back();
  Packed packed(table, random_head(1600, 64, 11));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInf, 1e31F}) {
    const Buffer x = random_rows(1, 64, 12);
    x.view().f32()[40] = bad;
    EXPECT_FALSE(packed.top(x.view(), 1)) << bad;
  }
  const Buffer two = random_rows(2, 64, 12);
  EXPECT_FALSE(packed.top(two.view(), 1));
  const Buffer x = random_rows(1, 64, 12);
  EXPECT_FALSE(packed.top(x.view(), 257));
  EXPECT_TRUE(packed.top(x.view(), 1));

  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInf}) {
    Head head = random_head(1600, 64, 11);
    head.set_scale(1234, 1, bad);
    Packed spoilt(table, head);
    EXPECT_FALSE(spoilt.top(x.view(), 1)) << bad;
  }
}

TEST(TopSearch, PausesWhereLittleIsLeftOut) {
  // All rows alike: every panel is computed.
  Head head = random_head(1600, 64, 13);
  for (int64_t r = 1; r < head.rows; ++r) {
    std::copy_n(head.data.begin(), 68, head.data.begin() + r * 68);
  }
  Packed packed(*tables().back(), head);
  const Buffer x = random_rows(1, 64, 14);
  int searches = 0;
  for (int call = 0; call < 400; ++call) searches += packed.top(x.view(), 1).has_value() ? 1 : 0;
  EXPECT_GE(searches, 5);
  EXPECT_LE(searches, 15);
}

}  // namespace
}  // namespace headrace
