// Products and embeddings of every format, on every instruction set, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/test_tensors.h"
#include "tests/infinity.h"

namespace headrace {
namespace {

using test::kInf;
using namespace backend_test;

/// The error a product may have: float rounding as a share of sum |x w|, and where activations are
/// integers half a step of each; where both are bf16 half of what the rounding of both may
/// come to: the errors of many columns differ in sign.
double tolerance(Isa isa, const float* x, const float* w, int64_t cols, double size) {
  if (isa == Isa::amx) return (0x1p-8 + 0x1p-15) * size + 1e-12;
  const KernelTable& table = kernel_table(isa);
  const double rounding = table.quantize_row == nullptr
                              ? 0
                              : 1.01 * activation_rounding(table.has_wide_steps, x, w, cols);
  return 2e-6 * size + rounding + 1e-12;
}

class LinearOnIsa : public testing::TestWithParam<Isa> {};

void expect_product(Isa isa, Format format, int64_t rows, int64_t cols, int64_t out_rows,
                    Codes codes, bool with_bias) {
  SCOPED_TRACE(std::string(isa_name(isa)) + " " + std::string(format_traits(format).name) + " x[" +
               std::to_string(rows) + ", " + std::to_string(cols) + "] -> " +
               std::to_string(out_rows));
  const auto backend = backend_of(isa);
  const auto data = made_up_blocks(format, out_rows, cols, 7, codes);
  const auto weights = decode_all(format, data);
  const auto matrix = backend->pack({format, out_rows, cols, data, {}, "w"});
  ASSERT_TRUE(matrix.ok()) << matrix.error().to_string();
  const Buffer x = uneven_rows(rows, cols, 3);
  if (codes != Codes::random) {
    // The largest sums that activations can give: all of one size, signs in runs.
    for (int64_t i = 0; i < rows * cols; ++i)
      x.view().f32()[i] = (i / cols) % 2 == 0 ? 1.0F : -1.0F;
  }
  const Buffer bias = random_rows(1, out_rows, 5);
  const Buffer out = backend->allocate(DType::f32, rows, out_rows);
  LinearTask task{matrix->get(), {}, out.view()};
  if (with_bias) task.bias = bias.view();
  backend->linear(x.view(), task);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out_rows; ++o) {
      double expected = with_bias ? bias.view().f32()[o] : 0.0;
      double size = std::abs(expected);
      for (int64_t k = 0; k < cols; ++k) {
        const double product = static_cast<double>(x.view().f32(r)[k]) *
                               static_cast<double>(weights[static_cast<size_t>(o * cols + k)]);
        expected += product;
        size += std::abs(product);
      }
      const double found = out.view().f32(r)[o];
      ASSERT_NEAR(found, expected,
                  tolerance(isa, x.view().f32(r), weights.data() + o * cols, cols, size))
          << "row " << r << " output " << o;
    }
  }
}

TEST_P(LinearOnIsa, EveryFormatAndShapeIsNearDoublePrecision) {
  for (const FormatTraits& format : all_formats()) {
    const int64_t step = std::max<int64_t>(format.block_elements, 32);
    for (const int64_t rows : {1, 3, 17, 33}) {
      expect_product(GetParam(), format.format, rows, step, 16, Codes::random, false);
      expect_product(GetParam(), format.format, rows, 3 * step, 37, Codes::random, true);
    }
    expect_product(GetParam(), format.format, 2, 1536, 50, Codes::random, false);
    if (step == 32) expect_product(GetParam(), format.format, 5, 576, 192, Codes::random, false);
  }
}

TEST_P(LinearOnIsa, ExtremeBlocksDoNotOverflow) {
  for (const FormatTraits& format : all_formats()) {
    for (const Codes codes : {Codes::all_ones, Codes::all_zeros, Codes::only_top_bits}) {
      expect_product(GetParam(), format.format, 4, 1536, 20, codes, false);
    }
  }
}

TEST_P(LinearOnIsa, ExactProductsRoundNoActivations) {
  for (const FormatTraits& format : all_formats()) {
    SCOPED_TRACE(format.name);
    const auto data = made_up_blocks(format.format, 20, 512, 7);
    const auto weights = decode_all(format.format, data);
    const Buffer x = uneven_rows(3, 512, 3);
    const Buffer out(DType::f32, 3, 20);
    for (const bool data_stays : {false, true}) {
      const auto backend = backend_of(GetParam());
      WeightView view{format.format, 20, 512, data, {}, "w"};
      view.is_exact = true;
      view.data_stays = data_stays;
      const auto matrix = backend->pack(view);
      ASSERT_TRUE(matrix.ok());
      backend->linear(x.view(), {matrix->get(), {}, out.view()});
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t o = 0; o < 20; ++o) {
          double expected = 0;
          double size = 0;
          for (int64_t k = 0; k < 512; ++k) {
            const double product =
                double{x.view().f32(r)[k]} * double{weights[static_cast<size_t>(o * 512 + k)]};
            expected += product;
            size += std::abs(product);
          }
          ASSERT_NEAR(out.view().f32(r)[o], expected, 2e-6 * size);
        }
      }
    }
  }
}

TEST_P(LinearOnIsa, ColumnsThatAreNoMultipleOfThirtyTwoRunAsFloats) {
  for (const Format format : {Format::f32, Format::f16, Format::bf16}) {
    for (const int64_t cols : {1, 7, 33, 100}) {
      expect_product(GetParam(), format, 3, cols, 18, Codes::random, false);
    }
  }
}

TEST_P(LinearOnIsa, WeightsThatStayWhereTheyAreGiveWhatPackedOnesGive) {
  constexpr int64_t kOutRows = 75;  // the last panel is alone and has rows that are not there
  std::vector<int32_t> order;
  for (int32_t i = 0; i < kOutRows; ++i) order.push_back((i * 31 + 4) % kOutRows);
  for (const FormatTraits& format : all_formats()) {
    const int64_t cols = 3 * std::max<int64_t>(format.block_elements, 32);
    const auto data = made_up_blocks(format.format, kOutRows, cols, 19);
    for (const bool in_order : {true, false}) {
      WeightView view{format.format, kOutRows, cols, data, {}, "w"};
      if (!in_order) view.row_order = order;
      std::vector<TokenId> ids(kOutRows);
      for (int32_t i = 0; i < kOutRows; ++i) ids[static_cast<size_t>(i)] = i;
      for (const int64_t rows : {1, 7, 33}) {
        const Buffer x = uneven_rows(rows, cols, 21);
        const Buffer bias = random_rows(1, kOutRows, 22);
        std::vector<float> expected;
        std::vector<float> expected_embeddings;
        for (const bool stays : {false, true}) {
          for (const int num_threads : {1, 2, 3}) {
            const auto backend = backend_of(GetParam(), num_threads);
            view.data_stays = stays;
            const auto matrix = backend->pack(view);
            ASSERT_TRUE(matrix.ok());
            const Buffer out = backend->allocate(DType::f32, rows, kOutRows);
            backend->linear(x.view(), {matrix->get(), bias.view(), out.view()});
            const Buffer embedded = backend->allocate(DType::f32, kOutRows, cols);
            backend->embed(**matrix, ids, 1.0F, embedded.view());
            if (expected.empty()) {
              expected = to_vector(out.view());
              expected_embeddings = to_vector(embedded.view());
            }
            EXPECT_TRUE(same_bits(to_vector(out.view()), expected))
                << format.name << ", " << rows << " rows, " << num_threads << " threads"
                << (stays ? ", in place" : "") << (in_order ? "" : ", permuted");
            EXPECT_TRUE(same_bits(to_vector(embedded.view()), expected_embeddings)) << format.name;
          }
        }
      }
    }
  }
}

TEST_P(LinearOnIsa, EmbedGivesTheReferenceDecodeBitForBit) {
  for (const FormatTraits& format : all_formats()) {
    SCOPED_TRACE(format.name);
    const int64_t cols = 512;
    const int64_t rows = 37;
    const auto backend = backend_of(GetParam());
    const auto data = made_up_blocks(format.format, rows, cols, 11);
    const auto weights = decode_all(format.format, data);
    const auto matrix = backend->pack({format.format, rows, cols, data, {}, "table"});
    ASSERT_TRUE(matrix.ok());
    std::vector<TokenId> ids;
    std::vector<float> expected;
    for (TokenId id = 36; id >= 0; id -= 3) {
      ids.push_back(id);
      expected.insert(expected.end(), weights.begin() + id * cols,
                      weights.begin() + (id + 1) * cols);
    }
    const Buffer out = backend->allocate(DType::f32, static_cast<int64_t>(ids.size()), cols);
    backend->embed(**matrix, ids, 1.0F, out.view());
    EXPECT_TRUE(same_bits(to_vector(out.view()), expected));
    backend->embed(**matrix, ids, 24.0F, out.view());
    for (float& value : expected) value *= 24.0F;
    EXPECT_TRUE(same_bits(to_vector(out.view()), expected));
  }
}

TEST_P(LinearOnIsa, RowOrderPermutesOutputs) {
  for (const Format format : {Format::f16, Format::q4_1, Format::q6_k, Format::iq4_nl}) {
    const auto backend = backend_of(GetParam());
    const int64_t rows = 21;
    const int64_t cols = 256;
    const auto data = made_up_blocks(format, rows, cols, 13);
    std::vector<int32_t> order;
    for (int32_t i = 0; i < rows; ++i) order.push_back((i * 8) % 21);
    const auto plain = backend->pack({format, rows, cols, data, {}, "w"});
    const auto permuted = backend->pack({format, rows, cols, data, order, "w"});
    ASSERT_TRUE(plain.ok() && permuted.ok());
    const Buffer x = random_rows(3, cols, 17);
    const Buffer a = backend->allocate(DType::f32, 3, rows);
    const Buffer b = backend->allocate(DType::f32, 3, rows);
    backend->linear(x.view(), {plain->get(), {}, a.view()});
    backend->linear(x.view(), {permuted->get(), {}, b.view()});
    for (int64_t r = 0; r < 3; ++r) {
      for (size_t i = 0; i < 21; ++i) {
        EXPECT_EQ(b.view().f32(r)[i], a.view().f32(r)[order[i]]);
      }
    }
  }
}

TEST_P(LinearOnIsa, WrongSizesAreErrorsThatNameTheTensor) {
  const auto backend = backend_of(GetParam());
  const std::vector<std::byte> data(1000);
  for (const auto& view : {WeightView{Format::q4_0, 2, 33, data, {}, "blk.0.x"},
                           WeightView{Format::q4_0, 2, 32, data, {}, "blk.0.x"},
                           WeightView{Format::f32, INT64_MAX, INT64_MAX, data, {}, "blk.0.x"},
                           WeightView{Format::f32, 0, 5, data, {}, "blk.0.x"}}) {
    const auto matrix = backend->pack(view);
    ASSERT_FALSE(matrix.ok());
    EXPECT_EQ(matrix.error().code, ErrorCode::corrupt_data);
    EXPECT_EQ(matrix.error().where, "blk.0.x");
  }
}

TEST_P(LinearOnIsa, ARowDoesNotDependOnItsCompanyOrTheThreads) {
  for (const FormatTraits& format : all_formats()) {
    SCOPED_TRACE(format.name);
    const int64_t cols = 768;
    const int64_t out_rows = 75;
    const auto data = made_up_blocks(format.format, out_rows, cols, 19);
    const Buffer x = uneven_rows(100, cols, 23);
    std::vector<float> expected;
    for (const int num_threads : {1, 2, 3, 4}) {
      const auto backend = backend_of(GetParam(), num_threads);
      const auto matrix = backend->pack({format.format, out_rows, cols, data, {}, "w"});
      ASSERT_TRUE(matrix.ok());
      for (const int64_t batch : {1, 2, 5, 31, 32, 33, 100}) {
        const Buffer out = backend->allocate(DType::f32, 100, out_rows);
        for (int64_t r = 0; r < 100; r += batch) {
          const int64_t n = std::min<int64_t>(batch, 100 - r);
          backend->linear(x.view().slice_rows(r, n),
                          {matrix->get(), {}, out.view().slice_rows(r, n)});
        }
        if (expected.empty()) expected = to_vector(out.view());
        ASSERT_TRUE(same_bits(to_vector(out.view()), expected))
            << num_threads << " threads, batches of " << batch;
      }
    }
  }
}

TEST_P(LinearOnIsa, NumbersThatAreNotFiniteSpoilTheirRowOnly) {
  const auto backend = backend_of(GetParam());
  const int64_t cols = 512;
  for (const Format format :
       {Format::q4_0, Format::q4_1, Format::q4_k, Format::q6_k, Format::q8_0}) {
    SCOPED_TRACE(format_traits(format).name);
    const auto data = made_up_blocks(format, 40, cols, 37);
    const auto matrix = backend->pack({format, 40, cols, data, {}, "w"});
    ASSERT_TRUE(matrix.ok());
    const Buffer x = random_rows(4, cols, 41);
    const Buffer out = backend->allocate(DType::f32, 4, 40);
    backend->linear(x.view(), {matrix->get(), {}, out.view()});
    const auto clean = to_vector(out.view());
    // A row of NaN, and a row with infinities: NaN with integers, infinite as well with floats.
    for (int64_t k = 0; k < cols; ++k) x.view().f32(1)[k] = std::numeric_limits<float>::quiet_NaN();
    x.view().f32(2)[300] = kInf;
    x.view().f32(2)[301] = -kInf;
    backend->linear(x.view(), {matrix->get(), {}, out.view()});
    for (int64_t o = 0; o < 40; ++o) {
      EXPECT_EQ(out.view().f32(0)[o], clean[static_cast<size_t>(o)]);
      EXPECT_TRUE(std::isnan(out.view().f32(1)[o]));
      EXPECT_FALSE(std::isfinite(out.view().f32(2)[o]));
      EXPECT_EQ(out.view().f32(3)[o], clean[static_cast<size_t>(3 * 40 + o)]);
    }
  }
}

TEST_P(LinearOnIsa, WeightsThatAreNoNumbersSpoilTheirOutputs) {
  const auto backend = backend_of(GetParam());
  const int64_t cols = 512;
  for (const FormatTraits& format : all_formats()) {
    SCOPED_TRACE(format.name);
    // Of every second output, all bits of all blocks are set: scales are NaN in most formats.
    auto data = made_up_blocks(format.format, 40, cols, 61);
    const size_t row_bytes = data.size() / 40;
    for (size_t row = 0; row < 40; row += 2) {
      std::fill_n(data.begin() + static_cast<int64_t>(row * row_bytes), row_bytes, std::byte{0xff});
    }
    const auto weights = decode_all(format.format, data);
    const auto matrix = backend->pack({format.format, 40, cols, data, {}, "w"});
    ASSERT_TRUE(matrix.ok());
    for (const int64_t rows : {1, 40}) {
      const Buffer x = random_rows(rows, cols, 62);
      const Buffer out = backend->allocate(DType::f32, rows, 40);
      backend->linear(x.view(), {matrix->get(), {}, out.view()});
      for (int64_t o = 0; o < 40; ++o) {
        const float* w = weights.data() + o * cols;
        const bool spoilt = std::any_of(w, w + cols, [](float one) { return std::isnan(one); });
        if (o % 2 == 0 && !spoilt) continue;  // large numbers only
        EXPECT_EQ(std::isfinite(out.view().f32(rows - 1)[o]), !spoilt) << o;
      }
    }
  }
}

TEST_P(LinearOnIsa, AGroupGivesWhatItsProductsGiveAlone) {
  const auto backend = backend_of(GetParam());
  const int64_t cols = 256;
  const Buffer x = random_rows(5, cols, 29);
  std::vector<std::unique_ptr<Matrix>> matrices;
  std::vector<Buffer> together;
  std::vector<Buffer> alone;
  std::vector<LinearTask> tasks;
  for (const Format format : {Format::q4_1, Format::f16, Format::q6_k, Format::q4_1}) {
    const int64_t rows = 40 + 7 * static_cast<int64_t>(matrices.size());
    const auto data = made_up_blocks(format, rows, cols, 31);
    auto matrix = backend->pack({format, rows, cols, data, {}, ""});
    ASSERT_TRUE(matrix.ok());
    matrices.push_back(std::move(*matrix));
    together.push_back(backend->allocate(DType::f32, 5, rows));
    alone.push_back(backend->allocate(DType::f32, 5, rows));
    tasks.push_back({matrices.back().get(), {}, together.back().view()});
    backend->linear(x.view(), {matrices.back().get(), {}, alone.back().view()});
  }
  backend->linear(x.view(), tasks);
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_TRUE(same_bits(to_vector(together[i].view()), to_vector(alone[i].view())));
  }
}

// Inputs that are made on the way, and results that are added where they are computed, give the
// bits of one operation after the other.
TEST_P(LinearOnIsa, FusedOperationsGiveWhatTheyGiveOneByOne) {
  const int64_t cols = 768;
  const int64_t out_rows = 200;
  for (const Format format : {Format::q4_1, Format::q6_k, Format::f16, Format::f32}) {
    const auto data = made_up_blocks(format, out_rows, cols, 51);
    for (const int num_threads : {1, 3}) {
      const auto backend = backend_of(GetParam(), num_threads);
      auto packed = backend->pack({format, out_rows, cols, data, {}, "w"});
      ASSERT_TRUE(packed.ok());
      const Matrix* matrix = packed->get();
      for (const int64_t rows : {1, 9, 70}) {
        SCOPED_TRACE(std::string(format_traits(format).name) + ", rows " + std::to_string(rows));
        const Buffer x = uneven_rows(rows, cols, 52);
        const Buffer up = random_rows(rows, cols, 53);
        const Buffer weight = random_rows(1, cols, 54);
        const Buffer bias = random_rows(1, cols, 56);
        const Buffer shift = random_rows(1, out_rows, 57);
        const Buffer ones(DType::f32, rows, cols);
        std::fill_n(ones.view().f32(), rows * cols, 1.0F);
        const Buffer made(DType::f32, rows, cols);
        const Buffer expected(DType::f32, rows, out_rows);
        const Buffer found(DType::f32, rows, out_rows);

        LinearInput norm = x.view();
        norm.norm = weight.view();
        norm.norm_eps = 1e-5F;
        backend->rms_norm(x.view(), weight.view(), 1e-5F, made.view());
        backend->linear(made.view(), {matrix, {}, expected.view()});
        backend->linear(norm, {matrix, {}, found.view()});
        EXPECT_TRUE(same_bits(to_vector(found.view()), to_vector(expected.view())));

        norm.centers = true;
        for (const bool has_bias : {false, true}) {
          if (has_bias) norm.norm_bias = bias.view();
          backend->layer_norm(x.view(), weight.view(), norm.norm_bias, 1e-5F, made.view());
          backend->linear(made.view(), {matrix, {}, expected.view()});
          backend->linear(norm, {matrix, {}, found.view()});
          EXPECT_TRUE(same_bits(to_vector(found.view()), to_vector(expected.view())));
        }

        for (const Activation activation : all_activations()) {
          LinearInput input = x.view();
          input.activation = activation;
          input.activates = true;
          backend->gated_activation(x.view(), ones.view(), activation, made.view());
          backend->linear(made.view(), {matrix, {}, expected.view()});
          backend->linear(input, {matrix, {}, found.view()});
          EXPECT_TRUE(same_bits(to_vector(found.view()), to_vector(expected.view())));

          input.activates = false;
          input.up = up.view();
          backend->gated_activation(x.view(), up.view(), activation, made.view());
          backend->linear(made.view(), {matrix, {}, expected.view()});
          backend->linear(input, {matrix, {}, found.view()});
          EXPECT_TRUE(same_bits(to_vector(found.view()), to_vector(expected.view())));
        }

        for (const float scale : {1.0F, 0.22F}) {
          const Buffer sum = random_rows(rows, out_rows, 55);
          const Buffer expected_sum = random_rows(rows, out_rows, 55);
          backend->linear(made.view(), {matrix, shift.view(), expected.view()});
          for (int64_t i = 0; i < rows * out_rows; ++i) expected.view().f32()[i] *= scale;
          backend->add(expected_sum.view(), expected.view());
          backend->linear(made.view(), {matrix, shift.view(), found.view(), sum.view(), scale});
          EXPECT_TRUE(same_bits(to_vector(found.view()), to_vector(expected.view())));
          EXPECT_TRUE(same_bits(to_vector(sum.view()), to_vector(expected_sum.view())));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, LinearOnIsa, testing::ValuesIn(available_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

}  // namespace
}  // namespace headrace
