// Attention over pages, on every instruction set, against plain attention in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backend/cpu/attention_scene.h"

namespace headrace {
namespace {

using namespace backend_test;

/// A head's key or query as pages or queries of q8 and q12 hold it.
std::vector<double> as_rounded(const AttentionCase& c, const float* head, bool is_key) {
  std::vector<double> out(head, head + c.head_dim);
  const Q8Panel panel(c.type, c.head_dim);
  const auto chunk = static_cast<size_t>(panel.dim / panel.chunks);
  const int32_t largest_code = !is_key                ? kLargestQueryCode
                               : c.type == KvType::q8 ? kLargestByteKey
                                                      : kLargestWordKey;
  const auto limit = static_cast<float>(largest_code);
  out.resize(static_cast<size_t>(panel.dim), 0.0);
  rotate(out);
  for (size_t begin = 0; begin < out.size(); begin += chunk) {
    const auto part = std::span(out).subspan(begin, chunk);
    float largest = 0.0F;
    for (const double x : part) largest = std::max(largest, std::abs(static_cast<float>(x)));
    if (largest == 0.0F) continue;
    // In float32, as kernels do: what lies between two codes goes the same way.
    const float scale = is_key ? f16_to_f32(f32_to_f16(largest / limit)) : largest / limit;
    const float factor = is_key ? 1.0F / scale : limit / largest;
    for (double& x : part) {
      const float code = std::nearbyint(static_cast<float>(x) * factor);
      x = double{scale} * std::clamp(code, -limit, limit);
    }
  }
  const auto size = static_cast<double>(rotate(out));
  for (double& x : out) x /= size;
  out.resize(static_cast<size_t>(c.head_dim));
  return out;
}

/// What attention computes with, of the keys and queries in a row of heads.
std::vector<double> as_multiplied(const AttentionCase& c, const float* row, int64_t num_heads,
                                  bool is_key) {
  std::vector<double> out;
  for (int64_t head = 0; head < num_heads; ++head) {
    const float* x = row + head * c.head_dim;
    std::vector<double> part(x, x + c.head_dim);
    if (is_quantized(c.type)) {
      part = as_rounded(c, x, is_key);
    } else if (c.type == KvType::f16 && is_key) {
      for (double& value : part) value = f16_to_f32(f32_to_f16(static_cast<float>(value)));
    }
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

/// What a page holds of a value. The rounding of other than exact values is left to the tolerance.
double cached(const AttentionCase& c, float x) {
  return c.type == KvType::f16 ? f16_to_f32(f32_to_f16(x)) : x;
}

/// For values within about [-1, 1]: of one element, and of the root of their mean square.
struct Tolerance {
  double largest;
  double mean;
};
Tolerance tolerance(const AttentionCase& c) {
  if (!is_quantized(c.type)) return {5e-6, 1e-6};
  // Weights have 15 bits of the largest among 64 keys, and are themselves within 1e-4.
  if (has_exact_values(c)) return {3e-4, 3e-5};
  // Values have 8 bits of a token's largest after the rotation, which may be 1.7.
  return {0.03, 0.0045};
}

std::vector<double> plain_attention(const AttentionCase& c, const Scene& scene) {
  const AttentionParams params = params_of(c);
  const int64_t group = c.num_heads / c.num_kv_heads;
  std::vector<std::vector<double>> q;
  std::vector<std::vector<double>> k;
  for (int64_t i = 0; i < c.num_tokens; ++i) {
    q.push_back(as_multiplied(c, scene.q.view().f32(i), c.num_heads, false));
    k.push_back(as_multiplied(c, scene.k.view().f32(i), c.num_kv_heads, true));
  }
  std::vector<double> out;
  for (int64_t i = 0; i < c.num_tokens; ++i) {
    for (int64_t head = 0; head < c.num_heads; ++head) {
      const int64_t at = head / group * c.head_dim;
      const int64_t hi = c.causal ? i + 1 : c.num_tokens;
      const int64_t lo = c.window > 0 ? std::max<int64_t>(0, i - c.window + 1) : 0;
      std::vector<double> values(static_cast<size_t>(c.head_dim), 0.0);
      std::vector<double> weights;
      double largest = -1e300;
      for (int64_t j = lo; j < hi; ++j) {
        double score = 0;
        for (int64_t d = 0; d < c.head_dim; ++d) {
          score += q[static_cast<size_t>(i)][static_cast<size_t>(head * c.head_dim + d)] *
                   k[static_cast<size_t>(j)][static_cast<size_t>(at + d)];
        }
        score *= params.scale;
        if (c.soft_cap > 0) score = c.soft_cap * std::tanh(score / c.soft_cap);
        weights.push_back(score);
        largest = std::max(largest, score);
      }
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - largest);
      for (int64_t j = lo; j < hi; ++j) {
        for (int64_t d = 0; d < c.head_dim; ++d) {
          values[static_cast<size_t>(d)] +=
              weights[static_cast<size_t>(j - lo)] / sum * cached(c, scene.v.view().f32(j)[at + d]);
        }
      }
      out.insert(out.end(), values.begin(), values.end());
    }
  }
  return out;
}

class AttentionOnIsa : public TestOfKernelTable {};

TEST_P(AttentionOnIsa, IsNearDoublePrecision) {
  const auto backend = backend_with(2);
  for (const AttentionCase& c : attention_cases()) {
    SCOPED_TRACE(c.name);
    const Scene scene(c);
    const auto expected = plain_attention(c, scene);
    const auto found = run(*backend, c, scene, c.num_tokens);
    ASSERT_EQ(found.size(), expected.size());
    double squares = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], tolerance(c).largest) << "element " << i;
      squares += (found[i] - expected[i]) * (found[i] - expected[i]);
    }
    EXPECT_LT(std::sqrt(squares / static_cast<double>(found.size())), tolerance(c).mean);
  }
}

TEST_P(AttentionOnIsa, LargeValuesSaturateInF16) {
  AttentionCase c{"", 1, 1, 32, 1, KvType::f16};
  const auto backend = backend_with(1);
  Scene scene(c);
  scene.v.view().f32()[0] = 1e6F;
  scene.v.view().f32()[1] = -1e6F;
  const auto out = run(*backend, c, scene, 1);
  EXPECT_EQ(out[0], 65504.0F);
  EXPECT_EQ(out[1], -65504.0F);
}

// What is not a number must reach the logits, where the engine looks for it, but no row that does
// not see it.
TEST_P(AttentionOnIsa, NotANumberReachesTheRowsThatSeeIt) {
  AttentionCase c{"", 3, 1, 64, 40, KvType::q8};
  const auto backend = backend_with(1);
  const int64_t bad_row = 20;
  for (const KvType type : {KvType::q8, KvType::q12}) {
    c.type = type;
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const int where : {0, 1, 2}) {
        Scene scene(c);
        const Buffer& buffer = where == 0 ? scene.q : where == 1 ? scene.k : scene.v;
        buffer.view().f32(bad_row)[5] = bad;
        const auto out = run(*backend, c, scene, c.num_tokens);
        for (size_t i = 0; i < out.size(); ++i) {
          const int64_t row = static_cast<int64_t>(i) / 192;
          const int64_t head = static_cast<int64_t>(i) / 64 % 3;
          const bool sees_it = where == 0 ? row == bad_row && head == 0 : row >= bad_row;
          ASSERT_EQ(std::isnan(out[i]), sees_it) << "input " << where << ", row " << row;
        }
      }
    }
  }
}

// Rotation spreads a single feature evenly, so that all codes of a stretch of 16 become the
// largest: sums of products are as large as they can be, in the widest chunk and with the most
// tokens.
TEST_P(AttentionOnIsa, LargestCodesDoNotOverflow) {
  for (const KvType type : {KvType::q8, KvType::q12}) {
    for (const int64_t head_dim : {240, 64}) {
      const AttentionCase c{"", 4, 1, head_dim, 64, type};
      Scene scene(c);
      for (const Buffer* x : {&scene.q, &scene.k, &scene.v}) {
        std::fill_n(x->view().f32(), x->view().rows * x->view().cols, 0.0F);
      }
      for (int64_t i = 0; i < c.num_tokens; ++i) {
        const float sign = i % 2 == 0 ? 1.0F : -1.0F;
        for (int64_t d = 0; d < head_dim; d += 16) {
          for (int64_t head = 0; head < 4; ++head)
            scene.q.view().f32(i)[head * head_dim + d] = 9.0F;
          scene.k.view().f32(i)[d] = 9.0F * sign;
          scene.v.view().f32(i)[d] = sign;
        }
      }
      const auto out = run(*backend_with(1), c, scene, c.num_tokens);
      // Even tokens get all of the weight.
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], i % 16 == 0 ? 1.0F : 0.0F, 0.01F) << kv_type_name(type) << " " << i;
      }
    }
  }
}

TEST_P(AttentionOnIsa, TinyAndHugeNumbersKeepTheirRatio) {
  for (const KvType type : {KvType::q8, KvType::q12}) {
    for (const float factor : {1e-20F, 1e-6F, 1e4F, 1e10F}) {
      const AttentionCase c{"", 2, 1, 64, 30, type};
      Scene scene(c);
      const auto expected = run(*backend_with(1), c, scene, 30);
      const int64_t n = 30 * 64;
      for (int64_t i = 0; i < n; ++i) scene.v.view().f32()[i] *= factor;
      const auto out = run(*backend_with(1), c, scene, 30);
      // Below 2^-40 / 127 a value's codes lose bits, and at last it is zero.
      const float tolerance = factor < 1e-12F ? 1e-12F : 0.02F * factor;
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], expected[i] * factor, tolerance) << kv_type_name(type) << " " << factor;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, AttentionOnIsa, testing::ValuesIn(all_tables()), table_name);

}  // namespace
}  // namespace headrace
