// Frequencies against values computed with transformers' formulas (modeling_rope_utils.py,
// ROPE_INIT_FUNCTIONS "default", "linear", "llama3", "yarn") in numpy float32.
#include "model/blocks/positions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "model/blocks/absolute_positions.h"

namespace headrace {
namespace {

using Expected = std::vector<std::pair<size_t, double>>;

void expect_frequencies(const RopeConfig& config, const Expected& expected) {
  const auto frequencies = rope_frequencies(config, {});
  ASSERT_EQ(static_cast<int64_t>(frequencies.size()), config.dims / 2);
  for (const auto& [pair, value] : expected) {
    EXPECT_NEAR(static_cast<double>(frequencies[pair]) / value, 1, 3e-6) << "pair " << pair;
  }
}

TEST(RopeFrequencies, Plain) {
  expect_frequencies({.base = 10000, .dims = 64},
                     {{0, 1}, {1, 0.74989420}, {16, 0.01}, {31, 1.3335215e-4}});
}

TEST(RopeFrequencies, Linear) {
  expect_frequencies(
      {.base = 10000, .dims = 64, .scaling = RopeConfig::Scaling::linear, .factor = 8},
      {{0, 0.125}, {1, 0.74989420 / 8}, {16, 0.00125}, {31, 1.3335215e-4 / 8}});
}

// Llama 3.1: base 500000, head 128, factor 8, low 1, high 4, 8192 tokens.
TEST(RopeFrequencies, Llama3) {
  expect_frequencies({.base = 500000,
                      .dims = 128,
                      .scaling = RopeConfig::Scaling::llama3,
                      .factor = 8,
                      .original_context = 8192,
                      .low_freq_factor = 1,
                      .high_freq_factor = 4},
                     {{0, 1},
                      {1, 0.81461722},
                      {20, 0.016560441},
                      {28, 0.0032114461},
                      {29, 0.0021665706},
                      {30, 0.0013718937},
                      {32, 5.2484602e-4},
                      {34, 1.7850779e-4},
                      {35, 9.5562129e-5},
                      {36, 7.7846555e-5},
                      {63, 3.0689259e-7}});
}

// Base 10000, head 128, factor 16, 4096 tokens: the ramp runs from pair 20 to pair 46.
TEST(RopeFrequencies, Yarn) {
  expect_frequencies({.base = 10000,
                      .dims = 128,
                      .scaling = RopeConfig::Scaling::yarn,
                      .factor = 16,
                      .original_context = 4096},
                     {{0, 1},
                      {10, 0.23713739},
                      {20, 0.056234129},
                      {21, 0.046940859},
                      {30, 0.0085268440},
                      {40, 8.8178896e-4},
                      {45, 1.5177164e-4},
                      {46, 8.3345090e-5},
                      {63, 7.2173880e-6}});
  EXPECT_NEAR(yarn_attention_factor(16), 1.2772588722, 1e-9);
  EXPECT_EQ(yarn_attention_factor(1), 1);
}

TEST(RopeFrequencies, DivisorsComeLast) {
  const std::vector<float> divisors = {1, 4};
  const auto frequencies = rope_frequencies({.base = 100, .dims = 4}, divisors);
  EXPECT_FLOAT_EQ(frequencies[0], 1);
  EXPECT_FLOAT_EQ(frequencies[1], 0.1F / 4);
}

TEST(RopeFrequencies, DynamicGrowsWithThePosition) {
  const RopeConfig config{.base = 10000,
                          .dims = 16,
                          .scaling = RopeConfig::Scaling::dynamic,
                          .factor = 4,
                          .original_context = 64};
  EXPECT_EQ(dynamic_base(config, 0), 10000);
  EXPECT_EQ(dynamic_base(config, 63), 10000);
  EXPECT_NEAR(dynamic_base(config, 99) / 38460.024, 1, 1e-4);
  RopeConfig two = config;
  two.dims = 2;
  EXPECT_EQ(dynamic_base(two, 99), 10000);
}

TEST(Sinusoids, AreThoseOfTensor2Tensor) {
  const auto table = sinusoids(2, 6, 9);
  ASSERT_EQ(table.size(), 54U);
  const auto at = [&](size_t row, size_t feature) {
    return static_cast<double>(table[row * 9 + feature]);
  };
  EXPECT_NEAR(at(0, 0), std::sin(2.0), 1e-6);
  EXPECT_NEAR(at(0, 4), std::cos(2.0), 1e-6);
  EXPECT_NEAR(at(5, 1), std::sin(7 * std::pow(10000.0, -1.0 / 3)), 1e-6);
  EXPECT_NEAR(at(5, 7), std::cos(7 * 1e-4), 1e-6);
  EXPECT_EQ(at(3, 8), 0);
}

}  // namespace
}  // namespace headrace
