#include "quant/packed/packed_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quant/format.h"
#include "tensor/half.h"

namespace headrace {
namespace {

/// A tensor with its bytes.
struct Owned {
  PackedTensor tensor;
  std::vector<std::byte> bytes;

  Owned() = default;
  Owned(std::string name, PackedType type, std::vector<int64_t> shape, size_t num_bytes)
      : bytes(num_bytes) {
    tensor = {std::move(name), type, std::move(shape), {}};
    tensor.data = bytes;
  }
  Owned(const Owned& other) : tensor(other.tensor), bytes(other.bytes) { tensor.data = bytes; }
  Owned& operator=(const Owned&) = delete;

  template <class T>
  void set(size_t index, T value) {
    std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
  }
};

Owned words(std::string name, std::vector<int64_t> shape) {
  const auto count = static_cast<size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1));
  return Owned(std::move(name), PackedType::i32, std::move(shape), count * 4);
}

/// Sets the bits of place `place` in word `index`.
void put_bits(Owned& owned, int64_t index, int64_t place, int bits, int value) {
  uint32_t word;
  auto* at = owned.bytes.data() + static_cast<size_t>(index) * 4;
  std::memcpy(&word, at, 4);
  word |= (static_cast<uint32_t>(value) & ((1u << bits) - 1)) << (place * bits);
  std::memcpy(at, &word, 4);
}

/// The plan of the same module says what came.
void expect_planned(const Result<UnpackedPlan>& plan, const UnpackedMatrix& matrix) {
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  EXPECT_EQ(plan->format, matrix.format);
  EXPECT_EQ(plan->rows, matrix.rows);
  EXPECT_EQ(plan->cols, matrix.cols);
}

std::vector<float> decoded(const UnpackedMatrix& matrix) {
  const FormatTraits& traits = format_traits(matrix.format);
  std::vector<float> out(static_cast<size_t>(matrix.rows * matrix.cols));
  EXPECT_EQ(matrix.bytes.size() / traits.block_bytes * traits.block_elements, out.size());
  EXPECT_EQ(out.size() % traits.block_elements, 0u);
  traits.decode(matrix.bytes.data(), out.data(), matrix.bytes.size() / traits.block_bytes);
  return out;
}

/// Random integers, zero points and scales, and the weights that they mean.
struct Scene {
  int64_t rows = 16;
  int64_t cols = 128;
  int64_t group_size = 64;
  int least = 0;
  int most = 15;
  int zero_least = 8;
  int zero_most = 8;
  bool half_scales = true;
  uint64_t seed = 1;

  int64_t num_groups() const { return (cols + group_size - 1) / group_size; }
};

struct Drawn {
  Scene scene;
  std::vector<int> q;         ///< [rows][cols]
  std::vector<int> zeros;     ///< [rows][groups]
  std::vector<float> scales;  ///< [rows][groups]
  std::vector<int32_t> group_of;

  int& level(int64_t row, int64_t col) { return q[static_cast<size_t>(row * scene.cols + col)]; }
  size_t group_index(int64_t row, int64_t group) const {
    return static_cast<size_t>(row * scene.num_groups() + group);
  }

  std::vector<float> weights() const {
    std::vector<float> out(q.size());
    for (int64_t row = 0; row < scene.rows; ++row) {
      for (int64_t col = 0; col < scene.cols; ++col) {
        const auto at = static_cast<size_t>(row * scene.cols + col);
        const size_t group = group_index(row, group_of[static_cast<size_t>(col)]);
        out[at] = scales[group] * static_cast<float>(q[at] - zeros[group]);
      }
    }
    return out;
  }
};

Drawn draw(const Scene& scene) {
  Drawn out;
  out.scene = scene;
  std::mt19937_64 random(scene.seed);
  std::uniform_int_distribution<int> level(scene.least, scene.most);
  std::uniform_int_distribution<int> zero(scene.zero_least, scene.zero_most);
  std::uniform_real_distribution<float> scale(0.001f, 0.03f);
  for (int64_t i = 0; i < scene.rows * scene.cols; ++i) out.q.push_back(level(random));
  for (int64_t i = 0; i < scene.rows * scene.num_groups(); ++i) {
    out.zeros.push_back(zero(random));
    const float value = scale(random);
    out.scales.push_back(scene.half_scales ? f16_to_f32(f32_to_f16(value)) : value);
  }
  for (int64_t col = 0; col < scene.cols; ++col) {
    out.group_of.push_back(static_cast<int32_t>(col / scene.group_size));
  }
  // Both ends are there, in the first block too.
  out.q[0] = scene.least;
  out.q[1] = scene.most;
  return out;
}

/// Scales as [groups, rows] or [rows, groups], of f16 or f32.
Owned scales_of(const Drawn& drawn, bool by_group, std::string name) {
  const int64_t rows = drawn.scene.rows;
  const int64_t groups = drawn.scene.num_groups();
  const bool half = drawn.scene.half_scales;
  Owned out(std::move(name), half ? PackedType::f16 : PackedType::f32,
            by_group ? std::vector{groups, rows} : std::vector{rows, groups},
            static_cast<size_t>(rows * groups) * (half ? 2 : 4));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t group = 0; group < groups; ++group) {
      const float scale = drawn.scales[drawn.group_index(row, group)];
      const auto at = static_cast<size_t>(by_group ? group * rows + row : row * groups + group);
      if (half) {
        out.set(at, f32_to_f16(scale));
      } else {
        out.set(at, scale);
      }
    }
  }
  return out;
}

struct Gptq {
  Owned qweight, qzeros, scales, g_idx;
  GptqModule module;
};

Gptq make_gptq(Drawn& drawn, int bits, GptqZeros form) {
  const Scene& scene = drawn.scene;
  const int64_t in_word = 32 / bits;
  Gptq out{words("l.qweight", {scene.cols / in_word, scene.rows}),
           words("l.qzeros", {scene.num_groups(), (scene.rows + in_word - 1) / in_word}),
           scales_of(drawn, true, "l.scales"),
           words("l.g_idx", {scene.cols}),
           {}};
  for (int64_t row = 0; row < scene.rows; ++row) {
    for (int64_t col = 0; col < scene.cols; ++col) {
      put_bits(out.qweight, col / in_word * scene.rows + row, col % in_word, bits,
               drawn.level(row, col));
    }
    for (int64_t group = 0; group < scene.num_groups(); ++group) {
      const int stored =
          drawn.zeros[drawn.group_index(row, group)] - (form == GptqZeros::minus_one ? 1 : 0);
      put_bits(out.qzeros, group * out.qzeros.tensor.shape[1] + row / in_word, row % in_word, bits,
               stored);
    }
  }
  for (size_t col = 0; col < drawn.group_of.size(); ++col) out.g_idx.set(col, drawn.group_of[col]);
  out.module.bits = bits;
  out.module.group_size = scene.group_size;
  out.module.zeros_form = form;
  return out;
}

/// Views are set once the tensors lie where they stay.
GptqModule& linked(Gptq& gptq, bool with_order = true) {
  for (Owned* one : {&gptq.qweight, &gptq.qzeros, &gptq.scales, &gptq.g_idx}) {
    one->tensor.data = one->bytes;
  }
  gptq.module.qweight = gptq.qweight.tensor;
  gptq.module.qzeros = gptq.qzeros.tensor;
  gptq.module.scales = gptq.scales.tensor;
  gptq.module.g_idx = with_order ? &gptq.g_idx.tensor : nullptr;
  return gptq.module;
}

TEST(Gptq, BecomesBlocksValueForValue) {
  struct Want {
    int bits, most, zero_least, zero_most;
    Format format;
  };
  for (const Want& want : std::vector<Want>{{4, 15, 8, 8, Format::q4_0},
                                            {4, 15, 0, 15, Format::q5_0},
                                            {4, 15, 7, 9, Format::q5_0},
                                            {2, 3, 0, 3, Format::q4_0},
                                            {8, 255, 128, 128, Format::q8_0}}) {
    for (const GptqZeros form : {GptqZeros::minus_one, GptqZeros::as_is}) {
      for (const int64_t group_size : {32, 64, 128}) {
        Drawn drawn = draw({.group_size = group_size,
                            .most = want.most,
                            .zero_least = want.zero_least,
                            .zero_most = want.zero_most});
        Gptq gptq = make_gptq(drawn, want.bits, form);
        for (const bool with_order : {true, false}) {
          const auto matrix = unpack_gptq(linked(gptq, with_order));
          ASSERT_TRUE(matrix.ok()) << matrix.error().to_string();
          EXPECT_EQ(matrix->format, want.format);
          expect_planned(plan_gptq(gptq.module), *matrix);
          EXPECT_EQ(matrix->rows, 16);
          EXPECT_EQ(matrix->cols, 128);
          EXPECT_EQ(decoded(*matrix), drawn.weights());
        }
      }
    }
  }
}

TEST(Gptq, OneGroupForAllColumns) {
  Drawn drawn = draw({.group_size = 128});
  Gptq gptq = make_gptq(drawn, 4, GptqZeros::minus_one);
  gptq.module.group_size = -1;
  const auto matrix = unpack_gptq(linked(gptq));
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->format, Format::q4_0);
  EXPECT_EQ(decoded(*matrix), drawn.weights());
}

TEST(Gptq, WhatNoBlockHoldsBecomesFloats) {
  // Columns in another order; groups that are no whole blocks; 8 bits with far zero points; scales
  // that binary16 does not hold.
  std::vector<std::pair<Drawn, int>> drawn;
  drawn.emplace_back(draw({}), 4);
  std::reverse(drawn.back().first.group_of.begin(), drawn.back().first.group_of.end());
  drawn.emplace_back(draw({.group_size = 16}), 4);
  drawn.emplace_back(draw({.most = 255, .zero_least = 0, .zero_most = 0}), 8);
  drawn.emplace_back(draw({.half_scales = false}), 4);
  for (float& scale : drawn.back().first.scales) scale *= 1e-5f;
  for (auto& [one, bits] : drawn) {
    Gptq gptq = make_gptq(one, bits, GptqZeros::as_is);
    const auto matrix = unpack_gptq(linked(gptq));
    ASSERT_TRUE(matrix.ok()) << matrix.error().to_string();
    EXPECT_EQ(matrix->format, Format::f32);
    expect_planned(plan_gptq(gptq.module), *matrix);
    EXPECT_EQ(decoded(*matrix), one.weights());
  }
}

TEST(Gptq, FullScalesMayMoveByHalfAUnit) {
  Drawn drawn = draw({.half_scales = false});
  Gptq gptq = make_gptq(drawn, 4, GptqZeros::minus_one);
  const auto matrix = unpack_gptq(linked(gptq));
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->format, Format::q4_0);
  const auto expected = drawn.weights();
  const auto got = decoded(*matrix);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], std::fabs(expected[i]) * 0x1.0p-11f);
  }
}

TEST(Awq, BecomesBlocksValueForValue) {
  constexpr int kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  for (const bool same_zeros : {true, false}) {
    Drawn drawn = draw({.zero_least = same_zeros ? 8 : 0, .zero_most = same_zeros ? 8 : 15});
    const Scene& scene = drawn.scene;
    Owned qweight = words("l.qweight", {scene.cols, scene.rows / 8});
    Owned qzeros = words("l.qzeros", {scene.num_groups(), scene.rows / 8});
    const Owned scales = scales_of(drawn, true, "l.scales");
    // As the packing loop is published: place i of a word takes output kOrder[i] of eight.
    for (int64_t word = 0; word < scene.rows / 8; ++word) {
      for (int place = 0; place < 8; ++place) {
        const int64_t row = word * 8 + kOrder[place];
        for (int64_t col = 0; col < scene.cols; ++col) {
          put_bits(qweight, col * (scene.rows / 8) + word, place, 4, drawn.level(row, col));
        }
        for (int64_t group = 0; group < scene.num_groups(); ++group) {
          put_bits(qzeros, group * (scene.rows / 8) + word, place, 4,
                   drawn.zeros[drawn.group_index(row, group)]);
        }
      }
    }
    AwqModule module{scene.group_size, qweight.tensor, &qzeros.tensor, scales.tensor};
    const auto matrix = unpack_awq(module);
    ASSERT_TRUE(matrix.ok()) << matrix.error().to_string();
    EXPECT_EQ(matrix->format, same_zeros ? Format::q4_0 : Format::q5_0);
    expect_planned(plan_awq(module), *matrix);
    EXPECT_EQ(decoded(*matrix), drawn.weights());
    if (same_zeros) {
      module.qzeros = nullptr;
      EXPECT_EQ(decoded(*unpack_awq(module)), drawn.weights());
    }
  }
}

TEST(PackQuantized, BecomesBlocksValueForValue) {
  for (const int bits : {4, 8}) {
    const int half = 1 << (bits - 1);
    for (const int zeros_in : {0, 8, 32}) {  // none, bytes, packed words
      for (const int64_t cols : {128, 100}) {
        const int reach = zeros_in == 0 ? 0 : 3;
        Drawn drawn = draw({.rows = 12,
                            .cols = cols,
                            .group_size = cols == 100 ? 50 : 64,
                            .least = -half,
                            .most = half - 1,
                            .zero_least = -reach,
                            .zero_most = reach});
        const Scene& scene = drawn.scene;
        const int64_t in_word = 32 / bits;
        const int64_t row_words = (cols + in_word - 1) / in_word;
        Owned weights = words("l.weight_packed", {scene.rows, row_words});
        for (int64_t row = 0; row < scene.rows; ++row) {
          for (int64_t col = 0; col < cols; ++col) {
            put_bits(weights, row * row_words + col / in_word, col % in_word, bits,
                     drawn.level(row, col) + half);
          }
        }
        Owned shape("l.weight_shape", PackedType::i64, {2}, 16);
        shape.set(0, scene.rows);
        shape.set(1, cols);
        const Owned scales = scales_of(drawn, false, "l.weight_scale");
        const int64_t groups = scene.num_groups();
        Owned bytes("l.weight_zero_point", PackedType::i8, {scene.rows, groups},
                    static_cast<size_t>(scene.rows * groups));
        Owned packed = words("l.weight_zero_point", {(scene.rows + in_word - 1) / in_word, groups});
        for (int64_t row = 0; row < scene.rows; ++row) {
          for (int64_t group = 0; group < groups; ++group) {
            const int zero = drawn.zeros[drawn.group_index(row, group)];
            bytes.set(static_cast<size_t>(row * groups + group), static_cast<int8_t>(zero));
            put_bits(packed, row / in_word * groups + group, row % in_word, bits, zero + half);
          }
        }
        PackQuantizedModule module;
        module.bits = bits;
        module.group_size = scene.group_size;
        module.weight_packed = weights.tensor;
        module.weight_scale = scales.tensor;
        module.weight_shape = shape.tensor;
        if (zeros_in == 8) module.weight_zero_point = &bytes.tensor;
        if (zeros_in == 32) module.weight_zero_point = &packed.tensor;
        const auto matrix = unpack_pack_quantized(module);
        ASSERT_TRUE(matrix.ok()) << matrix.error().to_string();
        expect_planned(plan_pack_quantized(module), *matrix);
        const bool is_blocks = cols == 128 && (bits == 4 || reach == 0);
        if (is_blocks) {
          EXPECT_EQ(matrix->format, bits == 8    ? Format::q8_0
                                    : reach == 0 ? Format::q4_0
                                                 : Format::q5_0);
        }
        EXPECT_EQ(decoded(*matrix), drawn.weights());

        Owned order = words("l.weight_g_idx", {cols});
        for (int64_t col = 0; col < cols; ++col) order.set(static_cast<size_t>(col), int32_t{-1});
        module.weight_g_idx = &order.tensor;
        EXPECT_EQ(decoded(*unpack_pack_quantized(module)), drawn.weights()) << "never set";
        order.set(3, int32_t{0});
        EXPECT_FALSE(unpack_pack_quantized(module).ok());
      }
    }
  }
}

TEST(ScaledInt, BecomesQ8ValueForValue) {
  const int64_t rows = 6;
  for (const int64_t cols : {64, 40}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{}, {1}, {1, 1}, {rows}, {rows, 1}, {rows, 2}}) {
      size_t count = 1;
      for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
      Owned weight("l.weight", PackedType::i8, {rows, cols}, static_cast<size_t>(rows * cols));
      for (size_t i = 0; i < weight.bytes.size(); ++i) {
        weight.set(i, static_cast<int8_t>(i * 37 % 256));
      }
      Owned scale("l.weight_scale", PackedType::bf16, shape, count * 2);
      for (size_t i = 0; i < count; ++i) {
        scale.set(i, f32_to_bf16(0.001f * static_cast<float>(i + 1)));
      }
      const auto matrix = unpack_scaled_int({weight.tensor, scale.tensor, nullptr});
      ASSERT_TRUE(matrix.ok()) << matrix.error().to_string();
      EXPECT_EQ(matrix->format == Format::q8_0, cols == 64);
      expect_planned(plan_scaled_int({weight.tensor, scale.tensor, nullptr}), *matrix);
      const auto got = decoded(*matrix);
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t col = 0; col < cols; ++col) {
          const int64_t at = count == 1                           ? 0
                             : count == static_cast<size_t>(rows) ? row
                                                                  : row * 2 + col / (cols / 2);
          uint16_t bits;
          std::memcpy(&bits, scale.bytes.data() + at * 2, 2);
          const auto index = static_cast<size_t>(row * cols + col);
          const auto q = static_cast<float>(static_cast<int8_t>(weight.bytes[index]));
          ASSERT_EQ(got[index], bf16_to_f32(bits) * q);
        }
      }
    }
  }
}

TEST(ScaledInt, ZeroPointsAreTakenOff) {
  Owned weight("l.weight", PackedType::i8, {2, 32}, 64);
  for (size_t i = 0; i < 64; ++i) weight.set(i, static_cast<int8_t>(i));
  Owned scale("l.weight_scale", PackedType::f32, {2, 1}, 8);
  scale.set(0, 0.5f);
  scale.set(1, 0.25f);
  Owned zero("l.weight_zero_point", PackedType::i8, {2, 1}, 2);
  zero.set(0, int8_t{5});
  zero.set(1, int8_t{-7});
  const auto matrix = unpack_scaled_int({weight.tensor, scale.tensor, &zero.tensor});
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->format, Format::f32);  // -128 - 5 is beyond Q8_0
  const auto got = decoded(*matrix);
  EXPECT_EQ(got[3], 0.5f * (3 - 5));
  EXPECT_EQ(got[40], 0.25f * (40 + 7));
}

/// The value of an E4M3 number from its definition.
float e4m3(int byte) {
  const int exponent = byte >> 3 & 15;
  const auto mantissa = static_cast<float>(byte & 7);
  const float magnitude = exponent == 0 ? mantissa / 8 * std::pow(2.0f, -6.0f)
                                        : (1 + mantissa / 8) * std::pow(2.0f, float(exponent - 7));
  return byte & 128 ? -magnitude : magnitude;
}

TEST(ScaledFp8, EveryNumberIsKept) {
  Owned weight("l.weight", PackedType::f8_e4m3, {2, 127}, 254);
  std::vector<float> expected;
  for (int i = 0; i < 254; ++i) {
    const int byte = i < 127 ? i : i + 1;  // without the NaNs 0x7f and 0xff
    weight.set(static_cast<size_t>(i), static_cast<uint8_t>(byte));
    expected.push_back(e4m3(byte));
  }
  EXPECT_EQ(expected[126], 448.0f);
  Owned scale("l.weight_scale", PackedType::f32, {}, 4);
  for (const float value : {1.0f, 0.125f}) {
    scale.set(0, value);
    const auto matrix = unpack_scaled_fp8({weight.tensor, scale.tensor});
    ASSERT_TRUE(matrix.ok()) << matrix.error().to_string();
    EXPECT_EQ(matrix->format, Format::f16);
    const auto got = decoded(*matrix);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected[i] * value) << i;
  }
  // Beyond binary16, and far below it.
  for (const float value : {1e4f, 1e-8f}) {
    scale.set(0, value);
    const auto matrix = unpack_scaled_fp8({weight.tensor, scale.tensor});
    ASSERT_TRUE(matrix.ok());
    EXPECT_EQ(matrix->format, Format::bf16);
    const auto got = decoded(*matrix);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i] * value, std::fabs(expected[i] * value) * 0x1.0p-8f);
    }
  }
}

TEST(ScaledFp8, ScalesAreOfRowsOrBlocks) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kCols = 7;
  Owned weight("l.weight", PackedType::f8_e4m3, {kRows, kCols}, kRows * kCols);
  for (size_t i = 0; i < weight.bytes.size(); ++i) weight.set(i, static_cast<uint8_t>(0x30 + i));
  const auto check = [&](std::vector<int64_t> shape, int64_t block_rows, int64_t block_cols) {
    size_t count = 1;
    for (const int64_t dim : shape) count *= static_cast<size_t>(dim);
    Owned scale("l.weight_scale_inv", PackedType::bf16, std::move(shape), count * 2);
    for (size_t i = 0; i < count; ++i) {
      scale.set(i, f32_to_bf16(0.25f * static_cast<float>(i + 1)));
    }
    const auto matrix = unpack_scaled_fp8({weight.tensor, scale.tensor, block_rows, block_cols});
    ASSERT_TRUE(matrix.ok()) << matrix.error().to_string();
    expect_planned(plan_scaled_fp8({weight.tensor, scale.tensor, block_rows, block_cols}), *matrix);
    const auto got = decoded(*matrix);
    const int64_t high = block_rows > 0 ? block_rows : 1;
    const int64_t wide = block_cols > 0 ? block_cols : kCols;
    const int64_t across = (kCols + wide - 1) / wide;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t col = 0; col < kCols; ++col) {
        const auto at = static_cast<size_t>(row * kCols + col);
        const auto block = static_cast<float>(row / high * across + col / wide);
        EXPECT_EQ(got[at], e4m3(0x30 + static_cast<int>(at)) * 0.25f * (block + 1));
      }
    }
  };
  check({kRows}, 0, 0);
  check({kRows, 1}, 0, 0);
  check({3, 3}, 2, 3);
  check({2, 1}, 4, 128);
}

TEST(ScaledFp8, ANumberThatIsNoneIsNamed) {
  Owned weight("l.weight", PackedType::f8_e4m3, {2, 4}, 8);
  weight.set(6, uint8_t{0x7f});
  Owned scale("l.weight_scale", PackedType::f32, {1}, 4);
  scale.set(0, 1.0f);
  const auto matrix = unpack_scaled_fp8({weight.tensor, scale.tensor});
  ASSERT_FALSE(matrix.ok());
  EXPECT_NE(matrix.error().to_string().find("row 1, column 2"), std::string::npos);
}

/// What must be refused, naming `part`.
void expect_refused(const Result<UnpackedMatrix>& matrix, const std::string& part) {
  ASSERT_FALSE(matrix.ok()) << part;
  EXPECT_NE(matrix.error().to_string().find(part), std::string::npos) << matrix.error().to_string();
}

TEST(PackedErrors, NameTensorExpectedAndFound) {
  const auto broken = [&](const std::function<void(Gptq&)>& damage) {
    Drawn drawn = draw({});
    Gptq gptq = make_gptq(drawn, 4, GptqZeros::minus_one);
    damage(gptq);
    return unpack_gptq(linked(gptq));
  };
  expect_refused(broken([](Gptq& g) { g.module.bits = 3; }), "weights of 3 bits");
  expect_refused(broken([](Gptq& g) { g.qweight.tensor.type = PackedType::f16; }),
                 "'l.qweight': expected elements of type I32, found F16");
  expect_refused(broken([](Gptq& g) { g.qweight.bytes.pop_back(); }), "needs 1024 bytes, found");
  expect_refused(broken([](Gptq& g) { g.qweight.tensor.shape = {256}; }), "expected a matrix");
  expect_refused(broken([](Gptq& g) { g.qweight.tensor.shape = {-16, -16}; }), "negative");
  expect_refused(broken([](Gptq& g) {
                   g.qweight.tensor.shape = {int64_t{1} << 40, int64_t{1} << 40};
                 }),
                 "too many");
  expect_refused(broken([](Gptq& g) { g.scales.tensor.shape = {16, 2}; }), "'l.scales': expected");
  expect_refused(broken([](Gptq& g) { g.module.group_size = 32; }), "4 groups of 32");
  expect_refused(broken([](Gptq& g) {
                   g.qzeros.tensor.shape = {1, 4};
                 }),
                 "expected shape [2, 2], found [1, 4]");
  expect_refused(broken([](Gptq& g) { g.g_idx.set(5, int32_t{2}); }),
                 "column 5 is in group 2 of 2");
  expect_refused(broken([](Gptq& g) { g.g_idx.set(5, int32_t{-1}); }), "group -1");
  expect_refused(broken([](Gptq& g) { g.scales.set(3, uint16_t{0x7e00}); }), "not a number");
  expect_refused(broken([](Gptq& g) { g.scales.set(3, uint16_t{0x7c00}); }), "infinite");

  PackQuantizedModule module;
  const Owned packed = words("l.weight_packed", {4, 4});
  Owned shape("l.weight_shape", PackedType::i64, {2}, 16);
  const Owned scale("l.weight_scale", PackedType::f16, {4, 1}, 8);
  module.weight_packed = packed.tensor;
  module.weight_scale = scale.tensor;
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{4, 33},
                                   {5, 32},
                                   {4, 24},
                                   {4, 0},
                                   {-4, 32},
                                   {4, -1},
                                   {4, INT64_MAX},
                                   {INT64_MIN, INT64_MIN}}) {
    shape.set(0, rows);
    shape.set(1, cols);
    module.weight_shape = shape.tensor;
    expect_refused(unpack_pack_quantized(module), "weight_shape is");
  }

  const Owned weight("l.weight", PackedType::i8, {4, 32}, 128);
  const Owned wide("l.weight_scale", PackedType::f16, {4, 3}, 24);
  expect_refused(unpack_scaled_int({weight.tensor, wide.tensor, nullptr}), "no 3 equal groups");
  const Owned tall("l.weight_scale", PackedType::f16, {5, 1}, 10);
  expect_refused(unpack_scaled_int({weight.tensor, tall.tensor, nullptr}), "found [5, 1]");
}

}  // namespace
}  // namespace headrace
