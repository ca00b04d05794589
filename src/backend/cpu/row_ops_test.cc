// The operations on rows, on every instruction set, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backend/cpu/test_tensors.h"
#include "tests/infinity.h"

namespace headrace {
namespace {

using test::kInf;
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

/// (x - mean) / sqrt(variance + eps) * weight + bias, in place of each feature.
std::vector<double> plain_layer_norm(const float* x, const float* weight, const float* bias,
                                     int64_t cols, double eps) {
  double mean = 0;
  for (int64_t i = 0; i < cols; ++i) mean += double{x[i]} / static_cast<double>(cols);
  double variance = 0;
  for (int64_t i = 0; i < cols; ++i) {
    variance += std::pow(double{x[i]} - mean, 2) / static_cast<double>(cols);
  }
  std::vector<double> out;
  for (int64_t i = 0; i < cols; ++i) {
    const double normed = (double{x[i]} - mean) / std::sqrt(variance + eps) * double{weight[i]};
    out.push_back(normed + (bias != nullptr ? double{bias[i]} : 0.0));
  }
  return out;
}

TEST_P(RowOpsOnIsa, LayerNorm) {
  for (const int64_t cols : {1, 15, 64, 576, 1000, 10000}) {
    const Buffer x = random_rows(7, cols, 1, 4.0F);
    // A mean far larger than what is left without it.
    for (int64_t i = 0; i < cols; ++i) x.view().f32(3)[i] += 1000.0F;
    const Buffer weight = random_rows(1, cols, 2);
    const Buffer bias = random_rows(1, cols, 3);
    const Buffer out = backend_->allocate(DType::f32, 7, cols);
    for (const bool has_bias : {false, true}) {
      const Tensor shift = has_bias ? bias.view() : Tensor();
      backend_->layer_norm(x.view(), weight.view(), shift, 1e-5F, out.view());
      for (int64_t r = 0; r < 7; ++r) {
        const auto expected = plain_layer_norm(x.view().f32(r), weight.view().f32(),
                                               has_bias ? bias.view().f32() : nullptr, cols, 1e-5);
        // The mean is known to float32's last bits; a row of one number is its mean.
        const double error = r == 3 ? 1e-4 : 2e-6;
        for (int64_t i = 0; i < cols; ++i) {
          ASSERT_NEAR(out.view().f32(r)[i], expected[static_cast<size_t>(i)], error) << cols;
        }
      }
    }
    const auto expected = to_vector(out.view());
    backend_->layer_norm(x.view(), weight.view(), bias.view(), 1e-5F, x.view());
    EXPECT_TRUE(same_bits(to_vector(x.view()), expected));
  }
}

TEST_P(RowOpsOnIsa, HeadLayerNormHasAWeightForEachHead) {
  for (const int64_t head_dim : {1, 20, 60, 64, 96}) {
    const int64_t cols = 3 * head_dim;
    const Buffer x = random_rows(9, cols, 3, 2.0F);
    const Buffer weight = random_rows(1, cols, 4);
    const auto before = to_vector(x.view());
    backend_->head_layer_norm(x.view(), head_dim, weight.view(), 1e-6F);
    for (int64_t at = 0; at < 9 * cols; at += head_dim) {
      const auto expected = plain_layer_norm(before.data() + at, weight.view().f32() + at % cols,
                                             nullptr, head_dim, 1e-6);
      for (int64_t i = 0; i < head_dim; ++i) {
        ASSERT_NEAR(x.view().f32()[at + i], expected[static_cast<size_t>(i)], 2e-6);
      }
    }
  }
}

TEST_P(RowOpsOnIsa, ClampKeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t cols : {1, 16, 37}) {
    const Buffer x = random_rows(3, cols, 5, 4.0F);
    x.view().f32(1)[cols - 1] = nan;
    x.view().f32(2)[0] = kInf;
    const auto before = to_vector(x.view());
    backend_->clamp(x.view(), 1.5F);
    for (size_t i = 0; i < before.size(); ++i) {
      if (std::isnan(before[i])) {
        ASSERT_TRUE(std::isnan(x.view().f32()[i]));
      } else {
        ASSERT_EQ(x.view().f32()[i], std::clamp(before[i], -1.5F, 1.5F));
      }
    }
  }
}

TEST_P(RowOpsOnIsa, GateRowsMultipliesByTheSigmoidOfEachRowsGate) {
  for (const int64_t cols : {1, 16, 100}) {
    const Buffer x = random_rows(6, cols, 6);
    const Buffer gates = random_rows(6, 1, 7, 5.0F);
    gates.view().f32()[1] = 200.0F;
    gates.view().f32()[2] = -200.0F;
    gates.view().f32()[3] = std::numeric_limits<float>::quiet_NaN();
    const auto before = to_vector(x.view());
    backend_->gate_rows(x.view(), gates.view());
    for (int64_t r = 0; r < 6; ++r) {
      const double factor = 1.0 / (1.0 + std::exp(-double{*gates.view().f32(r)}));
      for (int64_t i = 0; i < cols; ++i) {
        const double expected = factor * double{before[static_cast<size_t>(r * cols + i)]};
        const double found = x.view().f32(r)[i];
        if (r == 3) {
          ASSERT_TRUE(std::isnan(found));
        } else {
          ASSERT_NEAR(found, expected, 1e-6 * std::abs(expected) + 1e-37) << "row " << r;
        }
      }
    }
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
    const auto turned = to_vector(x.view());
    backend_->rope(x.view(), Tensor(), head_dim);
    EXPECT_TRUE(same_bits(to_vector(x.view()), turned)) << "there are no angles";
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
  for (const Activation activation : all_activations()) {
    backend_->gated_activation(gate.view(), up.view(), activation, out.view());
    for (int64_t i = 0; i < 3 * cols; ++i) {
      const double x = gate.view().f32()[i];
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(out.view().f32()[i]));
        continue;
      }
      const double y = activated(activation, x);
      ASSERT_NEAR(out.view().f32()[i], y * up.view().f32()[i], 1e-6 * std::abs(x) + 1e-12)
          << "x = " << x;
    }
  }
  const auto expected = to_vector(out.view());
  backend_->gated_activation(gate.view(), up.view(), all_activations().back(), gate.view());
  EXPECT_TRUE(same_bits(to_vector(gate.view()), expected));
}

// What gelu takes of numbers below zero is small, and not lost in a difference from one.
TEST_P(RowOpsOnIsa, GeluIsNearFarBelowZero) {
  const Buffer x = backend_->allocate(DType::f32, 1, 1000);
  const Buffer ones = backend_->allocate(DType::f32, 1, 1000);
  for (int64_t i = 0; i < 1000; ++i) {
    x.view().f32()[i] = -0.012F * static_cast<float>(i);
    ones.view().f32()[i] = 1.0F;
  }
  const Buffer out = backend_->allocate(DType::f32, 1, 1000);
  backend_->gated_activation(x.view(), ones.view(), Activation::gelu, out.view());
  for (int64_t i = 0; i < 1000; ++i) {
    const double expected = activated(Activation::gelu, double{x.view().f32()[i]});
    ASSERT_NEAR(out.view().f32()[i], expected, 1e-5 * std::abs(expected) + 1e-12) << i;
  }
}

TEST_P(RowOpsOnIsa, ARowDoesNotDependOnItsCompanyOrTheThreads) {
  const int64_t cols = 1003;
  const Buffer weight = random_rows(1, cols, 41);
  const Buffer bias = random_rows(1, cols, 42);
  const Buffer gates = random_rows(40, 1, 43, 3.0F);
  std::vector<float> expected;
  for (const int num_threads : {1, 2, 3}) {
    const auto backend = backend_of(GetParam(), num_threads);
    for (const int64_t batch : {1, 3, 40}) {
      const Buffer x = random_rows(40, cols, 44, 3.0F);
      for (int64_t r = 0; r < 40; r += batch) {
        const int64_t n = std::min<int64_t>(batch, 40 - r);
        const Tensor rows = x.view().slice_rows(r, n);
        backend->layer_norm(rows, weight.view(), bias.view(), 1e-5F, rows);
        backend->gate_rows(rows, gates.view().slice_rows(r, n));
        backend->gated_activation(rows, rows, Activation::gelu, rows);
        backend->head_layer_norm(rows, 17, weight.view(), 1e-5F);
        backend->clamp(rows, 2.0F);
      }
      if (expected.empty()) expected = to_vector(x.view());
      ASSERT_TRUE(same_bits(to_vector(x.view()), expected)) << num_threads << " " << batch;
    }
  }
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
  EXPECT_THROW(backend_->layer_norm(x.view(), x.view(), y.view(), 0.0F, x.view()), InternalError);
  EXPECT_THROW(backend_->head_layer_norm(x.view(), 3, x.view(), 0.0F), InternalError);
  EXPECT_THROW(backend_->gate_rows(x.view(), y.view()), InternalError);
  EXPECT_THROW(backend_->gather_rows(x.view(), std::vector<int32_t>{2}, x.view().slice_rows(0, 1)),
               InternalError);
}

INSTANTIATE_TEST_SUITE_P(Cpu, RowOpsOnIsa, testing::ValuesIn(available_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

}  // namespace
}  // namespace headrace
