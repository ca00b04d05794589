#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "checkpoint/test_gguf.h"
#include "tests/gguf_builder.h"

namespace headrace {
namespace {

using test::error_of;
using test::GgufBuilder;
using test::read;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr uint32_t kF32 = 0, kQ4_0 = 2, kQ4_K = 12, kIQ1_S = 19, kI8 = 24;

// The message for one tensor 't' of these dimensions (fastest first, as in the file).
std::string dims_error(std::vector<int64_t> dims, uint32_t type = kF32) {
  const std::vector<int64_t> shape(dims.rbegin(), dims.rend());
  return error_of(GgufBuilder().add_tensor(type == kQ4_K ? "q" : "t", type, shape, "1234").build())
      .message;
}

TEST(GgufTensors, AreFoundWithShapeFormatAndData) {
  GgufBuilder builder;
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  builder.add("general.architecture", "test");
  builder.add_f32("matrix", {2, 3}, floats);
  builder.add_tensor("blocks", kQ4_0, {1, 2, 1, 32}, std::string(36, 'q'));
  builder.add_f32("scalar", {}, {floats.data() + 5, 1});
  const std::string bytes = builder.build();
  const auto file = read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  ASSERT_EQ(file->tensors.size(), 3u);
  const CheckpointTensor& matrix = file->tensors[0];
  EXPECT_EQ(matrix.name, "matrix");
  EXPECT_EQ(matrix.format, Format::f32);
  EXPECT_EQ(matrix.shape, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(matrix.data.size(), 24u);
  EXPECT_EQ(std::memcmp(matrix.data.data(), floats.data(), 24), 0);
  const CheckpointTensor& blocks = file->tensors[1];
  EXPECT_EQ(blocks.shape, (std::vector<int64_t>{1, 2, 1, 32}));
  ASSERT_EQ(blocks.data.size(), 36u);
  EXPECT_EQ(blocks.data[35], std::byte{'q'});
  const CheckpointTensor& scalar = file->tensors[2];
  EXPECT_EQ(scalar.shape, (std::vector<int64_t>{1}));
  EXPECT_EQ(std::memcmp(scalar.data.data(), &floats[5], 4), 0);
}

TEST(GgufTensors, ADimensionMustBePositive) {
  // A 65-byte file from a bug report: one tensor 't', two dimensions, the second zero.
  const unsigned char file[65] = {'G', 'G', 'U', 'F', 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                                  0,   0,   0,   0,   0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                                  't', 2,   0,   0,   0, 1, 0, 0, 0, 0, 0, 0, 0};  // the rest is
                                                                                   // zero
  const Error error = error_of(std::string(reinterpret_cast<const char*>(file), sizeof file));
  EXPECT_EQ(error.code, ErrorCode::corrupt_data);
  EXPECT_EQ(error.to_string(), "byte 24: tensor 't' dimension 1 must be positive, found 0");
  EXPECT_EQ(dims_error({-3}), "tensor 't' dimension 0 must be positive, found -3");
  EXPECT_EQ(dims_error({4, 1, 1, std::numeric_limits<int64_t>::min()}),
            "tensor 't' dimension 3 must be positive, found -9223372036854775808");
}

TEST(GgufTensors, ADimensionProductMustNotOverflow) {
  EXPECT_EQ(dims_error({kHuge, 2, 1, 1}, kI8),
            "tensor 't' has dimensions 9223372036854775807 x 2 x 1 x 1, more elements than 63 bits "
            "can count");
  // 2^22 x (2^42 + 1) floats: 2^64 + 2^22 elements wrap to 2^22.
  EXPECT_EQ(dims_error({int64_t{1} << 22, (int64_t{1} << 42) + 1}),
            "tensor 't' has dimensions 4194304 x 4398046511105, more elements than 63 bits can "
            "count");
  // Countable elements, but their bytes are not.
  EXPECT_EQ(dims_error({int64_t{1} << 62}),
            "tensor 't' has dimensions 4611686018427387904 of F32, more bytes than 64 bits can "
            "count");
  EXPECT_EQ(dims_error({int64_t{1} << 32, int64_t{1} << 30}),
            "tensor 't' has dimensions 4294967296 x 1073741824 of F32, more bytes than 64 bits can "
            "count");
  EXPECT_EQ(dims_error({int64_t{1} << 40}),
            "tensor 't' needs 4398046511104 bytes at offset 0 of the data, which has 4 bytes");
}

TEST(GgufTensors, TheSumOfSizesMustNotOverflow) {
  GgufBuilder builder;
  builder.add_tensor_record("a", kF32, {int64_t{1} << 60}, 0);
  builder.add_tensor_record("b", kF32, {int64_t{1} << 60}, uint64_t{1} << 62);
  builder.add_tensor_record("c", kF32, {int64_t{1} << 60}, uint64_t{3} << 62);
  builder.add_data("1234");
  EXPECT_EQ(
      error_of(builder.build()).message,
      "tensor 'a' needs 4611686018427387904 bytes at offset 0 of the data, which has 4 bytes");
  GgufBuilder wrapping;
  wrapping.add_tensor_record("c", kF32, {int64_t{1} << 60}, uint64_t{3} << 62);
  wrapping.add_data("1234");
  EXPECT_EQ(error_of(wrapping.build()).code, ErrorCode::corrupt_data);
}

TEST(GgufTensors, ACountNearTheLargestIsRejected) {
  std::string bytes = GgufBuilder().add_tensor_record("t", kF32, {1}, 0).build();
  for (const uint64_t count : {uint64_t(kHuge) / 8 - 1, uint64_t(kHuge), ~uint64_t{0}}) {
    std::memcpy(bytes.data() + 8, &count, sizeof count);
    const Error error = error_of(bytes);
    EXPECT_EQ(error.where, "header at byte 8");
    EXPECT_NE(error.message.find("the tensor count is " + std::to_string(count)),
              std::string::npos);
  }
}

TEST(GgufTensors, FormatAndRowLengthAreChecked) {
  const Error known = error_of(GgufBuilder().add_tensor("t", kIQ1_S, {256}, "").build());
  EXPECT_EQ(known.code, ErrorCode::unsupported);
  EXPECT_EQ(known.message, "tensor 't' has type number 19 (IQ1_S), which this build cannot decode");
  EXPECT_FALSE(known.hint.empty());
  const Error unknown = error_of(GgufBuilder().add_tensor("t", 12345, {256}, "").build());
  EXPECT_EQ(unknown.message, "tensor 't' has type number 12345, which this build cannot decode");
  EXPECT_EQ(dims_error({128, 2}, kQ4_K),
            "tensor 'q' has rows of 128 weights, but Q4_K needs a multiple of 256");
  const Error dims = error_of(GgufBuilder().add_tensor("t", kF32, {1, 1, 1, 1, 1}, "1234").build());
  EXPECT_EQ(dims.to_string(), "tensor 't': byte 33: has 5 dimensions, at most 4 are allowed");
}

TEST(GgufTensors, NamesAreChecked) {
  const auto named = [](const std::string& name) {
    return error_of(GgufBuilder().add_tensor(name, kF32, {1}, "1234").build()).to_string();
  };
  EXPECT_EQ(named(""), "tensor number 0 at byte 24: the name is empty");
  EXPECT_EQ(named(std::string(257, 'n')),
            "tensor number 0: byte 24: the name is 257 bytes long, but only 256 are allowed");
  EXPECT_EQ(named(std::string(256, 'n')), "no error");
  GgufBuilder twice;
  twice.add_tensor("t", kF32, {1}, "1234").add_tensor("u", kF32, {1}, "1234");
  twice.add_tensor("t", kF32, {1}, "1234");
  EXPECT_EQ(error_of(twice.build()).to_string(), "byte 90: tensor 't' appears twice");
}

TEST(GgufTensors, DataRangesAreChecked) {
  const auto two_at = [](uint64_t first, uint64_t second) {
    GgufBuilder builder;
    builder.add_tensor_record("a", kF32, {16}, first);
    builder.add_tensor_record("b", kF32, {16}, second);
    return error_of(builder.add_data(std::string(128, 'x')).build()).message;
  };
  EXPECT_EQ(two_at(0, 64), "no error");
  EXPECT_EQ(two_at(64, 0), "no error");
  EXPECT_EQ(two_at(0, 32),
            "tensor 'b' shares bytes with tensor 'a': its data begins at 32, before 64");
  EXPECT_EQ(two_at(32, 0),
            "tensor 'a' shares bytes with tensor 'b': its data begins at 32, before 64");
  EXPECT_EQ(two_at(64, 64),
            "tensor 'b' shares bytes with tensor 'a': its data begins at 64, before 128");
  EXPECT_EQ(two_at(0, 68), "tensor 'b' has data offset 68, no multiple of the alignment 32");
  EXPECT_EQ(two_at(0, 96),
            "tensor 'b' needs 64 bytes at offset 96 of the data, which has 128 bytes");
  EXPECT_EQ(two_at(0, ~uint64_t{31}),
            "tensor 'b' needs 64 bytes at offset 18446744073709551584 of the data, which has 128 "
            "bytes");
}

}  // namespace
}  // namespace headrace
