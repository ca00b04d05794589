#include "cli/lighter_models.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/test_vocabulary.h"

namespace headrace::cli {
namespace {

using text::byte_level_example;

std::string fault_of_pairs(const std::vector<std::string>& texts) {
  const auto pairs = lighter_pairs(texts);
  return pairs.ok() ? "" : pairs.error().to_string();
}

TEST(LighterModels, PairsAreRead) {
  const auto pairs = lighter_pairs({"large=medium", "medium=small"});
  ASSERT_TRUE(pairs.ok());
  EXPECT_EQ(lighter_of(*pairs, "large"), "medium");
  EXPECT_EQ(lighter_of(*pairs, "medium"), "small");
  EXPECT_EQ(lighter_of(*pairs, "small"), "");
}

TEST(LighterModels, OtherFormsAndCirclesAreRefused) {
  for (const char* text : {"", "large", "=small", "large="}) {
    EXPECT_NE(fault_of_pairs({text}).find("expected MODEL=LIGHTER"), std::string::npos) << text;
  }
  EXPECT_NE(fault_of_pairs({"a=a"}).find("circle: a -> a"), std::string::npos);
  EXPECT_NE(fault_of_pairs({"a=b", "b=c", "c=a"}).find("circle: a -> b -> c -> a"),
            std::string::npos);
  EXPECT_NE(fault_of_pairs({"x=a", "a=b", "b=a"}).find("circle: a -> b -> a"), std::string::npos);
  EXPECT_NE(fault_of_pairs({"a=b", "a=c"}).find("two lighter models, 'b' and 'c'"),
            std::string::npos);
}

TEST(LighterModels, BothAreServedAndReadTheSameTokens) {
  const auto tokens = byte_level_example().build();
  auto others = byte_level_example();
  others.token("xyz");
  const auto other_tokens = others.build();
  const std::vector<TokensOfModel> models = {{"large", tokens.get(), 266},
                                             {"small", tokens.get(), 266},
                                             {"padded", tokens.get(), 320},
                                             {"other", other_tokens.get(), 266}};
  EXPECT_TRUE(check_lighter_pairs({{"large", "small"}}, models).ok());
  const auto unknown = check_lighter_pairs({{"large", "smal"}}, models);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
  EXPECT_NE(unknown.error().to_string().find("'smal' is not served; there are large, small"),
            std::string::npos);
  const auto other = check_lighter_pairs({{"large", "other"}}, models);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::mismatch);
  EXPECT_NE(other.error().to_string().find("'xyz'"), std::string::npos);
  const auto padded = check_lighter_pairs({{"large", "padded"}}, models);
  ASSERT_FALSE(padded.ok());
  EXPECT_NE(padded.error().to_string().find("266"), std::string::npos);
  EXPECT_NE(padded.error().to_string().find("320"), std::string::npos);
}

}  // namespace
}  // namespace headrace::cli
