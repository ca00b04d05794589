#include "app/tokenizer_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Words of one letter, and <end>, which may take the white space behind it.
std::shared_ptr<const Tokenizer> tokenizer_with_end(bool takes_space) {
  const json vocab = {{"[UNK]", 0}, {"a", 1}, {"b", 2}, {"\n", 3}};
  const json end = {{"id", 4},         {"content", "<end>"},    {"single_word", false},
                    {"lstrip", false}, {"rstrip", takes_space}, {"normalized", false},
                    {"special", true}};
  const json split = {{"type", "Split"},
                      {"pattern", {{"String", "\n"}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json root = {{"added_tokens", {end}},
                     {"pre_tokenizer", split},
                     {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "[UNK]"}}}};
  const fs::path folder = fs::path(testing::TempDir()) / "tokenizer_check_test";
  fs::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << root.dump();
  return std::move(open_hf_tokenizer(folder.string(), {})).value();
}

TEST(TokenizerCheck, SpecialTokensThatTakeWhiteSpaceMakeADifference) {
  const auto plain = tokenizer_with_end(false);
  const auto taking = tokenizer_with_end(true);
  EXPECT_TRUE(compare_tokenizers(*plain, "a", *tokenizer_with_end(false), "b").same());
  for (const bool swapped : {false, true}) {
    const auto found =
        compare_tokenizers(swapped ? *taking : *plain, "a", swapped ? *plain : *taking, "b");
    ASSERT_TRUE(found.difference);
    EXPECT_FALSE(found.same());
    EXPECT_EQ(found.difference->text, "a \n<end>\n b");
    EXPECT_NE(found.difference->a, found.difference->b);
  }
}

}  // namespace
}  // namespace headrace
