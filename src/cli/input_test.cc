#include "cli/input.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace headrace::cli {
namespace {

using Ids = std::vector<TokenId>;

TEST(ParseIds, ArraysObjectsAndPlainNumbers) {
  EXPECT_EQ(*parse_ids("[1, 2,3]", 10, "f"), (Ids{1, 2, 3}));
  EXPECT_EQ(*parse_ids(" {\"ids\": [4], \"pieces\": [\"x\"]}", 10, "f"), (Ids{4}));
  EXPECT_EQ(*parse_ids("{\"token_ids\": [4, 5]}", 10, "f"), (Ids{4, 5}));
  EXPECT_EQ(*parse_ids("7 8,9\n0\n", 10, "f"), (Ids{7, 8, 9, 0}));
  EXPECT_EQ(*parse_ids("[]", 10, "f"), Ids{});
  EXPECT_EQ(*parse_ids("", 10, "f"), Ids{});
}

TEST(ParseIds, NamesWhatIsWrong) {
  for (const char* text :
       {"[1, \"a\"]", "[1.5]", "[null]", "{\"x\": 1}", "1 two", "1;2", "[10]", "[-1]", "10",
        "[99999999999999999999]", "99999999999999999999", "[1,", "[18446744073709551615]"}) {
    const auto ids = parse_ids(text, 10, "ids.json");
    ASSERT_FALSE(ids.ok()) << text;
    EXPECT_EQ(ids.error().code, ErrorCode::invalid_argument) << text;
    EXPECT_EQ(ids.error().where, "ids.json") << text;
  }
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
  EXPECT_EQ(read_text(testing::TempDir()).error().code, ErrorCode::io_error);
  const std::string path = testing::TempDir() + "/headrace_input_test";
  std::ofstream(path, std::ios::binary) << std::string("a\0b", 3);
  EXPECT_EQ(*read_text(path), std::string("a\0b", 3));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace headrace::cli
