#include "quant/format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/check.h"
#include "quant/q5_0.h"

namespace headrace {
namespace {

uint32_t parse_hex(std::string_view digits) {
  uint32_t value = 0;
  for (const char digit : digits) {
    value = value << 4 | static_cast<uint32_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return value;
}

std::vector<std::byte> parse_bytes(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(parse_hex(std::string_view(hex).substr(i, 2))));
  }
  return bytes;
}

std::filesystem::path fixture_path(const FormatTraits& traits) {
  std::string name(traits.name);
  for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
  return std::filesystem::path(HEADRACE_SOURCE_DIR) / "tests/golden/quant" / (name + ".json");
}

const FormatTraits& traits_of(const std::string& name) {
  for (const FormatTraits& traits : all_formats()) {
    if (traits.name == name) return traits;
  }
  throw InternalError("no format " + name);
}

class FormatTest : public ::testing::TestWithParam<std::string> {};

TEST_P(FormatTest, DecodesBitForBitLikeTheReference) {
  const FormatTraits& traits = traits_of(GetParam());
  std::ifstream file(fixture_path(traits));
  ASSERT_TRUE(file) << fixture_path(traits) << ": see tools/make_quant_fixture.py";
  const auto fixture = nlohmann::json::parse(file);
  ASSERT_EQ(fixture.at("block_elements"), traits.block_elements);
  ASSERT_EQ(fixture.at("block_bytes"), traits.block_bytes);

  std::vector<std::byte> blocks;
  std::string expected;
  for (const std::string block : fixture.at("blocks")) {
    const auto bytes = parse_bytes(block);
    ASSERT_EQ(bytes.size(), traits.block_bytes);
    blocks.insert(blocks.end(), bytes.begin(), bytes.end());
  }
  for (const std::string floats : fixture.at("floats")) expected += floats;
  const size_t num_blocks = blocks.size() / traits.block_bytes;
  ASSERT_GE(num_blocks, 10u);
  ASSERT_EQ(expected.size(), num_blocks * traits.block_elements * 8);

  // One float more than needed, to see that decode stops at the end.
  std::vector<float> decoded(num_blocks * traits.block_elements + 1, -7.0f);
  traits.decode(blocks.data(), decoded.data(), num_blocks);
  EXPECT_EQ(decoded.back(), -7.0f);
  size_t num_finite = 0;
  for (size_t i = 0; i + 1 < decoded.size(); ++i) {
    const uint32_t want = parse_hex(std::string_view(expected).substr(i * 8, 8));
    const auto got = std::bit_cast<uint32_t>(decoded[i]);
    if (std::isnan(std::bit_cast<float>(want))) {
      ASSERT_TRUE(std::isnan(decoded[i])) << "weight " << i;
    } else {
      ASSERT_EQ(got, want) << "weight " << i;
      num_finite += std::isfinite(decoded[i]) ? 1 : 0;
    }
  }
  EXPECT_GT(num_finite, num_blocks * traits.block_elements / 2);
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const FormatTraits& traits : all_formats()) names.emplace_back(traits.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, FormatTest, ::testing::ValuesIn(format_names()),
                         [](const auto& test) { return test.param; });

TEST(Formats, AreFoundByTypeNumber) {
  for (const FormatTraits& traits : all_formats()) {
    EXPECT_EQ(format_from_ggml_type(traits.ggml_type), traits.format);
    EXPECT_EQ(format_traits(traits.format).name, traits.name);
  }
  EXPECT_EQ(format_from_ggml_type(12), Format::q4_k);
  EXPECT_EQ(format_from_ggml_type(4), std::nullopt);
  EXPECT_EQ(format_from_ggml_type(0xffffffffu), std::nullopt);
  EXPECT_THROW(format_traits(static_cast<Format>(200)), InternalError);
}

TEST(Formats, RowBytesNeedWholeBlocksAndDoNotWrap) {
  EXPECT_EQ(format_row_bytes(Format::f32, 5), 20u);
  EXPECT_EQ(format_row_bytes(Format::q4_1, 576), 360u);
  EXPECT_EQ(format_row_bytes(Format::q6_k, 512), 420u);
  EXPECT_EQ(format_row_bytes(Format::q6_k, 0), 0u);
  EXPECT_EQ(format_row_bytes(Format::q6_k, 640), std::nullopt);
  EXPECT_EQ(format_row_bytes(Format::q4_0, 31), std::nullopt);
  EXPECT_EQ(format_row_bytes(Format::f32, uint64_t{1} << 62), std::nullopt);
}

TEST(Formats, FifthBitsOfQ5_0BelongToTheirOwnWeight) {
  BlockQ5_0 block = {};
  block.d = 0x3c00;  // 1
  block.qh[3] = 0x80;
  float out[32];
  decode_q5_0(block, out);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], i == 31 ? 0.0f : -16.0f) << i;
}

}  // namespace
}  // namespace headrace
