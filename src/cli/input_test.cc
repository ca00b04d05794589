#include "cli/input.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace headrace::cli {
namespace {

using Ids = std::vector<TokenId>;

TEST(ParseIds, ArraysObjectsAndPlainNumbers) {
  EXPECT_EQ(*parse_ids("[1, 2,3]", "f"), (Ids{1, 2, 3}));
  EXPECT_EQ(*parse_ids(" {\"ids\": [4], \"pieces\": [\"x\"]}", "f"), (Ids{4}));
  EXPECT_EQ(*parse_ids("{\"token_ids\": [4, 5]}", "f"), (Ids{4, 5}));
  EXPECT_EQ(*parse_ids("7 8,9\n0\n", "f"), (Ids{7, 8, 9, 0}));
  EXPECT_EQ(*parse_ids("[]", "f"), Ids{});
  EXPECT_EQ(*parse_ids("", "f"), Ids{});
}

TEST(ParseIds, NamesWhatIsWrong) {
  for (const char* text : {"[1, \"a\"]", "[1.5]", "[null]", "{\"x\": 1}", "1 two", "1;2", "[-1]",
                           "-1", "2147483648", "[2147483648]", "[99999999999999999999]",
                           "99999999999999999999", "[1,", "[18446744073709551615]"}) {
    const auto ids = parse_ids(text, "ids.json");
    ASSERT_FALSE(ids.ok()) << text;
    EXPECT_EQ(ids.error().code, ErrorCode::invalid_argument) << text;
    EXPECT_EQ(ids.error().where, "ids.json") << text;
  }
  EXPECT_EQ(parse_ids("[18446744073709551615]", "f").error().message,
            "id 18446744073709551615 is not in any vocabulary");
}

TEST(ParseIds, IdsAreComparedWithTheVocabulary) {
  EXPECT_TRUE(check_ids(Ids{0, 9}, 10, "f").ok());
  const auto checked = check_ids(Ids{0, 10}, 10, "f");
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().to_string(), "f: id 10 is not in the vocabulary of 10 tokens");
}

TEST(ParseJson, DeepNestingIsRefusedAndStringsDoNotCount) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'), "f").ok());
  const auto deep = parse_json(std::string(100000, '['), "f");
  ASSERT_FALSE(deep.ok());
  EXPECT_NE(deep.error().message.find("100000"), std::string::npos);
  EXPECT_TRUE(parse_json("\"" + std::string(1000, '[') + "\"", "f").ok());
  EXPECT_TRUE(parse_json("\"\\\"" + std::string(1000, '[') + "\"", "f").ok());
}

TEST(ReadText, MissingFilesAndDirectories) {
  EXPECT_EQ(read_text("/nonexistent/file").error().code, ErrorCode::not_found);
  EXPECT_FALSE(read_text("/nonexistent/file").error().hint.empty());
  EXPECT_EQ(read_text(testing::TempDir()).error().code, ErrorCode::io_error);
  EXPECT_FALSE(read_text(testing::TempDir()).error().hint.empty());
  const std::string path = testing::TempDir() + "/headrace_input_test";
  std::ofstream(path, std::ios::binary) << std::string("a\0b", 3);
  EXPECT_EQ(*read_text(path), std::string("a\0b", 3));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace headrace::cli
