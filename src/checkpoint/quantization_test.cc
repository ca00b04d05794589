#include "checkpoint/quantization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "quant/encode.h"
#include "tensor/half.h"
#include "tests/gguf_builder.h"

namespace headrace {
namespace {

CheckpointTensor shaped(std::string name, std::vector<int64_t> shape, Format format = Format::f32) {
  return {std::move(name), format, std::move(shape), {}};
}

Format planned(const char* type, const CheckpointTensor& tensor) {
  return planned_format(*find_quantization(type), tensor);
}

TEST(Quantizations, AreFoundByNameInAnyCase) {
  for (const Quantization& one : all_quantizations()) {
    EXPECT_EQ(find_quantization(one.name), &one);
    for (const Format format : {one.layers, one.more, one.ends}) {
      EXPECT_NE(encoder_of(format), nullptr) << one.name;
    }
  }
  EXPECT_EQ(find_quantization("Q4_K_M"), find_quantization("q4_k_m"));
  for (const char* unknown : {"", "q4", "q4_k_", "q4_k_mm", "mxfp4"}) {
    EXPECT_EQ(find_quantization(unknown), nullptr) << unknown;
  }
  EXPECT_EQ(quantization_names().size(), all_quantizations().size());
}

TEST(Quantizations, MatricesGetTheTypeAndEndsABetterOne) {
  EXPECT_EQ(planned("q4_k", shaped("blk.0.attn_q.weight", {64, 256})), Format::q4_k);
  EXPECT_EQ(planned("q4_k", shaped("blk.0.ffn_down.weight", {64, 256}, Format::bf16)),
            Format::q4_k);
  EXPECT_EQ(planned("q4_k", shaped("output.weight", {64, 256})), Format::q6_k);
  EXPECT_EQ(planned("q4_0", shaped("token_embd.weight", {64, 256})), Format::q6_k);
  EXPECT_EQ(planned("q8_0", shaped("token_embd.weight", {64, 256})), Format::q8_0);
  EXPECT_EQ(planned("q4_k_m", shaped("blk.0.ffn_down.weight", {64, 256})), Format::q6_k);
  EXPECT_EQ(planned("q4_k_m", shaped("blk.1.ffn_down.weight", {64, 256})), Format::q4_k);
  EXPECT_EQ(planned("q4_k_m", shaped("blk.12.attn_v.weight", {64, 256})), Format::q6_k);
  EXPECT_EQ(planned("q4_k_m", shaped("blk.0.ffn_up.weight", {64, 256})), Format::q4_k);
  EXPECT_EQ(planned("q4_k", shaped("blk.0.ffn_up_exps.weight", {8, 64, 256})), Format::q4_k);
}

TEST(Quantizations, OtherTensorsStay) {
  for (const char* name :
       {"blk.0.attn_norm.weight", "blk.0.attn_q.bias", "blk.0.ffn_gate_inp.weight",
        "position_embd.weight", "token_types.weight", "rope_freqs.weight"}) {
    EXPECT_EQ(planned("q4_0", shaped(name, {64, 256})), Format::f32) << name;
    EXPECT_FALSE(is_quantizable(shaped(name, {64, 256}))) << name;
  }
  EXPECT_EQ(planned("q4_0", shaped("a.weight", {256})), Format::f32);
  EXPECT_EQ(planned("q4_0", shaped("a.weight", {1, 256})), Format::f32);
  EXPECT_EQ(planned("q4_0", shaped("a.weight", {256, 1})), Format::f32);
  EXPECT_EQ(planned("q4_0", shaped("a.weight", {64, 256}, Format::q8_0)), Format::q8_0);
}

TEST(Quantizations, RowsThatNoBlockDividesGetAnotherFormat) {
  const auto of_cols = [](const char* type, int64_t cols, Format from = Format::f32) {
    return planned(type, shaped("blk.1.attn_q.weight", {64, cols}, from));
  };
  EXPECT_EQ(of_cols("q2_k", 288), Format::q4_0);
  EXPECT_EQ(of_cols("q3_k", 288), Format::q4_0);
  EXPECT_EQ(of_cols("q4_k", 288), Format::q4_1);
  EXPECT_EQ(of_cols("q5_k", 288), Format::q5_1);
  EXPECT_EQ(of_cols("q6_k", 288), Format::q8_0);
  EXPECT_EQ(of_cols("q8_0", 288), Format::q8_0);
  for (const char* type : {"q4_k", "q8_0", "q4_0"}) {
    EXPECT_EQ(of_cols(type, 48), Format::f16);
    EXPECT_EQ(of_cols(type, 48, Format::f16), Format::f16);
    EXPECT_EQ(of_cols(type, 48, Format::bf16), Format::bf16);
  }
}

/// A tensor of these floats, which it points to.
CheckpointTensor tensor_of(const std::vector<float>& values, int64_t cols) {
  return {"blk.0.attn_q.weight",
          Format::f32,
          {static_cast<int64_t>(values.size()) / cols, cols},
          std::as_bytes(std::span(values))};
}

TEST(Quantizations, WhatHalfFloatsCannotHoldBecomesBf16) {
  std::vector<float> values(48 * 2000, 0.5f);
  const CheckpointTensor tensor = tensor_of(values, 48);
  const Quantization& half = *find_quantization("f16");
  EXPECT_EQ(chosen_format(half, tensor), Format::f16);
  values[48 * 1999 + 47] = 70000;
  EXPECT_EQ(chosen_format(half, tensor), Format::bf16);
  EXPECT_EQ(chosen_format(*find_quantization("q4_k"), tensor), Format::bf16);
  EXPECT_EQ(chosen_format(*find_quantization("f32"), tensor), Format::f32);
  CheckpointTensor is_half = tensor;
  is_half.format = Format::f16;
  EXPECT_EQ(chosen_format(half, is_half), Format::f16);
}

TEST(Quantizations, RowsAreThoseOfTheEncoder) {
  // Longer than what is encoded at once.
  std::vector<float> values(3 * 2304);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i * i % 1013)) * 0.03f;
  }
  const CheckpointTensor tensor = tensor_of(values, 2304);
  for (const Format format : {Format::q8_0, Format::q4_k, Format::q6_k, Format::f16}) {
    const FormatTraits& traits = format_traits(format);
    const auto row_bytes = *format_row_bytes(format, 2304);
    EXPECT_EQ(bytes_in_format(tensor, format), 3 * row_bytes);
    std::vector<std::byte> expected(row_bytes);
    encoder_of(format)->encode(values.data() + 2304, nullptr, expected.data(),
                               2304 / traits.block_elements);
    std::vector<std::byte> got(row_bytes + 1, std::byte{7});
    ASSERT_TRUE(encode_row(tensor, format, 1, got.data()).ok());
    EXPECT_EQ(got.back(), std::byte{7});
    got.pop_back();
    EXPECT_EQ(got, expected);
  }
}

TEST(Quantizations, AWeightThatIsNoNumberIsNamed) {
  std::vector<float> values(3 * 2048, 0.5f);
  const CheckpointTensor tensor = tensor_of(values, 2048);
  std::vector<std::byte> row(2048 * 4);
  values[2048 + 1500] = std::numeric_limits<float>::quiet_NaN();
  values[2 * 2048] = 1e9f;
  EXPECT_TRUE(encode_row(tensor, Format::q8_0, 0, row.data()).ok());
  const auto broken = encode_row(tensor, Format::q8_0, 1, row.data());
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::corrupt_data);
  const std::string text = broken.error().to_string();
  EXPECT_NE(text.find("'blk.0.attn_q.weight'"), std::string::npos) << text;
  EXPECT_NE(text.find("row 1, column 1500 is not a number"), std::string::npos) << text;
  const auto large = encode_row(tensor, Format::q8_0, 2, row.data());
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().to_string().find("more than Q8_0 can hold"), std::string::npos);
  EXPECT_TRUE(encode_row(tensor, Format::f32, 2, row.data()).ok());
}

TEST(Quantizations, AQuantisedFileIsRefused) {
  const std::string path = testing::TempDir() + "quantization_test.gguf";
  const auto check = [&](Format matrix) {
    const FormatTraits& traits = format_traits(matrix);
    test::GgufBuilder file;
    file.add("general.architecture", "llama");
    file.add_f32("output_norm.weight", {256}, std::vector<float>(256, 1.0f));
    file.add_tensor("output.weight", traits.ggml_type, {2, 256},
                    std::string(2 * *format_row_bytes(matrix, 256), '\0'));
    file.write(path);
    const auto checkpoint = std::move(open_checkpoint(path).value());
    std::filesystem::remove(path);
    return check_quantizable(*checkpoint);
  };
  EXPECT_TRUE(check(Format::f32).ok());
  EXPECT_TRUE(check(Format::bf16).ok());
  const auto refused = check(Format::q4_k);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().to_string().find("already (Q4_K)"), std::string::npos)
      << refused.error().to_string();
}

}  // namespace
}  // namespace headrace
