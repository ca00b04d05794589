// Feed-forward blocks against double precision.
#include "model/blocks/mlp.h"

#include <gtest/gtest.h>

#include <vector>

#include "backend/cpu/test_tensors.h"

namespace headrace {
namespace {

using namespace backend_test;

constexpr int64_t kRows = 5;
constexpr int64_t kEmbedding = 40;
constexpr int64_t kHidden = 72;

struct TestLinear {
  TestLinear(Backend& backend, int64_t out, int64_t in, uint64_t seed) {
    const auto data = made_up_blocks(Format::f32, out, in, seed);
    weights = decode_all(Format::f32, data);
    linear.weight = backend.pack({Format::f32, out, in, data, {}, "w"}).value();
    const Buffer values = random_rows(1, out, seed + 1);
    bias = to_vector(values.view());
    linear.bias = backend.upload(bias);
  }

  std::vector<double> product(const std::vector<double>& x) const {
    std::vector<double> out(bias.begin(), bias.end());
    for (size_t o = 0; o < out.size(); ++o) {
      for (size_t k = 0; k < x.size(); ++k) out[o] += double{weights[o * x.size() + k]} * x[k];
    }
    return out;
  }

  Linear linear;
  std::vector<float> weights;
  std::vector<float> bias;
};

struct MlpCase : testing::Test {
  std::unique_ptr<Backend> backend = backend_of(Isa::reference);
  TestLinear gate{*backend, kHidden, kEmbedding, 1};
  TestLinear up{*backend, kHidden, kEmbedding, 3};
  TestLinear down{*backend, kEmbedding, kHidden, 5};
  Activations activations{*backend, {.embedding = kEmbedding, .feed_forward = kHidden}};
  Buffer x = random_rows(kRows, kEmbedding, 7, 4.0F);
  Buffer out{DType::f32, kRows, kEmbedding};
  Buffer sum = random_rows(kRows, kEmbedding, 8);

  /// Checks out and sum, after a block was applied.
  void expect(Activation activation, bool has_gate, float scale) const {
    const auto before = to_vector(random_rows(kRows, kEmbedding, 8).view());
    for (int64_t r = 0; r < kRows; ++r) {
      const std::vector<double> row(x.view().f32(r), x.view().f32(r) + kEmbedding);
      std::vector<double> hidden = up.product(row);
      const std::vector<double> gates = gate.product(row);
      for (size_t i = 0; i < hidden.size(); ++i) {
        hidden[i] = has_gate ? activated(activation, gates[i]) * hidden[i]
                             : activated(activation, hidden[i]);
      }
      const auto expected = down.product(hidden);
      for (int64_t i = 0; i < kEmbedding; ++i) {
        const double value = double{scale} * expected[static_cast<size_t>(i)];
        ASSERT_NEAR(out.view().f32(r)[i], value, 1e-5);
        ASSERT_NEAR(sum.view().f32(r)[i],
                    value + double{before[static_cast<size_t>(r * kEmbedding + i)]}, 1e-5);
      }
    }
  }
};

TEST_F(MlpCase, Plain) {
  activations.reserve(kRows, 1);
  Mlp mlp;
  mlp.up = std::move(up.linear);
  mlp.down = std::move(down.linear);
  mlp.activation = Activation::gelu;
  mlp.scale = 0.5F;
  mlp.apply(*backend, x.view(), activations, out.view(), sum.view());
  expect(Activation::gelu, false, 0.5F);
}

TEST_F(MlpCase, Gated) {
  activations.reserve(kRows, 1);
  GatedMlp mlp;
  mlp.gate = std::move(gate.linear);
  mlp.up = std::move(up.linear);
  mlp.down = std::move(down.linear);
  mlp.scale = 0.22F;
  mlp.apply(*backend, x.view(), activations, out.view(), sum.view());
  expect(Activation::silu, true, 0.22F);
}

}  // namespace
}  // namespace headrace
