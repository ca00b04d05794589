// The operations on rows, on every instruction set, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backend/cpu/test_tensors.h"

namespace headrace {
namespace {

using namespace backend_test;

class RowOpsOnIsa : public testing::TestWithParam<Isa> {
 protected:
  std::unique_ptr<Backend> backend_ = backend_of(GetParam());
};

TEST_P(RowOpsOnIsa, RmsNorm) {
  for (const int64_t cols : {1, 15, 64, 576, 1000, 10000}) {
    const Buffer x = random_rows(7, cols, 1, 4.0F);
    const Buffer weight = random_rows(1, cols, 2);
    const Buffer out = backend_->allocate(DType::f32, 7, cols);
    backend_->rms_norm(x.view(), weight.view(), 1e-5F, out.view());
    for (int64_t r = 0; r < 7; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < cols; ++i) sum += std::pow(double{x.view().f32(r)[i]}, 2);
      const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(cols) + 1e-5);
      for (int64_t i = 0; i < cols; ++i) {
        const double expected = x.view().f32(r)[i] * inverse * weight.view().f32()[i];
        ASSERT_NEAR(out.view().f32(r)[i], expected, 1e-6 * std::abs(expected) + 1e-12);
      }
    }
    const auto expected = to_vector(out.view());
    backend_->rms_norm(x.view(), weight.view(), 1e-5F, x.view());
    EXPECT_TRUE(same_bits(to_vector(x.view()), expected));
  }
}

TEST_P(RowOpsOnIsa, HeadRmsNormIsRmsNormOfEachHead) {
  const Buffer x = random_rows(6, 32, 3);
  const Buffer same(DType::f32, 2, 96);
  std::copy_n(x.view().f32(), 192, same.view().f32());
  const Buffer weight = random_rows(1, 32, 4);
  backend_->head_rms_norm(same.view(), 32, weight.view(), 1e-6F);
  backend_->rms_norm(x.view(), weight.view(), 1e-6F, x.view());
  EXPECT_TRUE(same_bits(to_vector(same.view()), to_vector(x.view())));
}

TEST_P(RowOpsOnIsa, RopeTurnsPairsByTheirAngle) {
  const std::vector<float> inv_freq = {1.0F, 0.3F, 0.01F, 0.0005F, 0.7F};
  const std::vector<int32_t> positions = {0, 1, 4000, 130000};
  for (const int64_t head_dim : {10, 14}) {
    const Buffer angles = backend_->allocate(DType::f32, 4, 10);
    backend_->rope_angles({inv_freq, 1.25F}, positions, angles.view());
    const Buffer x = random_rows(4, 2 * head_dim, 5);
    const auto before = to_vector(x.view());
    backend_->rope(x.view(), angles.view(), head_dim);
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t head = 0; head < 2; ++head) {
        const float* in = before.data() + (r * 2 + head) * head_dim;
        const float* out = x.view().f32(r) + head * head_dim;
        for (int64_t i = 0; i < 5; ++i) {
          const double angle = static_cast<float>(positions[static_cast<size_t>(r)]) *
                               inv_freq[static_cast<size_t>(i)];
          const float a = in[i];
          const float b = in[i + 5];
          ASSERT_NEAR(out[i], 1.25 * (a * std::cos(angle) - b * std::sin(angle)), 1e-6);
          ASSERT_NEAR(out[i + 5], 1.25 * (b * std::cos(angle) + a * std::sin(angle)), 1e-6);
        }
        for (int64_t i = 10; i < head_dim; ++i) ASSERT_EQ(out[i], in[i]);
      }
    }
  }
}

TEST_P(RowOpsOnIsa, GatedActivations) {
  const int64_t cols = 1001;
  const Buffer gate = random_rows(3, cols, 6, 30.0F);
  const Buffer up = random_rows(3, cols, 7);
  gate.view().f32()[0] = 200.0F;
  gate.view().f32()[1] = -200.0F;
  gate.view().f32()[2] = 0.0F;
  gate.view().f32()[1000] = std::numeric_limits<float>::quiet_NaN();
  const Buffer out = backend_->allocate(DType::f32, 3, cols);
  for (const Activation activation : {Activation::silu, Activation::gelu_tanh}) {
    backend_->gated_activation(gate.view(), up.view(), activation, out.view());
    for (int64_t i = 0; i < 3 * cols; ++i) {
      const double x = gate.view().f32()[i];
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(out.view().f32()[i]));
        continue;
      }
      const double y =
          activation == Activation::silu
              ? x / (1.0 + std::exp(-x))
              : 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
      ASSERT_NEAR(out.view().f32()[i], y * up.view().f32()[i], 1e-6 * std::abs(x) + 1e-12)
          << "x = " << x;
    }
  }
  const auto expected = to_vector(out.view());
  backend_->gated_activation(gate.view(), up.view(), Activation::gelu_tanh, gate.view());
  EXPECT_TRUE(same_bits(to_vector(gate.view()), expected));
}

TEST_P(RowOpsOnIsa, AddSoftCapAndGather) {
  const Buffer x = random_rows(5, 100, 8, 80.0F);
  const Buffer delta = random_rows(5, 100, 9);
  const auto before = to_vector(x.view());
  backend_->add(x.view(), delta.view());
  for (int64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(x.view().f32()[i], before[static_cast<size_t>(i)] + delta.view().f32()[i]);
  }
  const Buffer picked = backend_->allocate(DType::f32, 3, 100);
  backend_->gather_rows(x.view(), std::vector<int32_t>{4, 0, 4}, picked.view());
  std::vector<float> row(100);
  backend_->read_row(x.view(), 4, row);
  EXPECT_TRUE(same_bits(to_vector(picked.view().slice_rows(2, 1)), row));
  const auto uncapped = to_vector(x.view());
  backend_->soft_cap(x.view(), 30.0F);
  for (size_t i = 0; i < 500; ++i) {
    ASSERT_NEAR(x.view().f32()[i], 30.0 * std::tanh(uncapped[i] / 30.0), 1e-5);
  }
}

TEST_P(RowOpsOnIsa, AddRmsNormIsANormAndThenAnAdd) {
  const Buffer delta = random_rows(40, 640, 31);
  const Buffer weight = random_rows(1, 640, 32);
  const Buffer x = random_rows(40, 640, 33);
  const Buffer expected = random_rows(40, 640, 33);
  const Buffer normed(DType::f32, 40, 640);
  backend_->rms_norm(delta.view(), weight.view(), 1e-6F, normed.view());
  backend_->add(expected.view(), normed.view());
  backend_->add_rms_norm(x.view(), delta.view(), weight.view(), 1e-6F);
  EXPECT_TRUE(same_bits(to_vector(x.view()), to_vector(expected.view())));
}

TEST_P(RowOpsOnIsa, ArgmaxTakesTheSmallerIdAndRefusesNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const int64_t cols : {1, 5, 16, 33, 50000}) {
    const Buffer x = random_rows(6, cols, 10);
    std::vector<TokenId> expected;
    for (int64_t r = 0; r < 6; ++r) {
      float* row = x.view().f32(r);
      const int64_t at = cols * r / 7;
      if (r == 1) row[at] = row[cols - 1] = 2.0F;
      if (r == 2) row[at] = nan;
      if (r == 3) row[at] = inf;
      if (r == 4) std::fill_n(row, cols, -inf);
      if (r == 5) row[cols - 1] = nan;
      expected.push_back(
          r == 2 || r == 5 ? -1 : static_cast<TokenId>(std::max_element(row, row + cols) - row));
    }
    std::vector<TokenId> found(6);
    backend_->argmax_rows(x.view(), found);
    EXPECT_EQ(found, expected) << cols;
  }
}

TEST_P(RowOpsOnIsa, BrokenShapesAreInternalErrors) {
  const Buffer x = random_rows(2, 8, 11);
  const Buffer y = random_rows(2, 9, 12);
  EXPECT_THROW(backend_->add(x.view(), y.view()), InternalError);
  EXPECT_THROW(backend_->rms_norm(x.view(), y.view(), 0.0F, x.view()), InternalError);
  EXPECT_THROW(backend_->gather_rows(x.view(), std::vector<int32_t>{2}, x.view().slice_rows(0, 1)),
               InternalError);
}

INSTANTIATE_TEST_SUITE_P(Cpu, RowOpsOnIsa, testing::ValuesIn(available_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

}  // namespace
}  // namespace headrace
