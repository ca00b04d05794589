#include "cli/conversation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::cli {
namespace {

Result<Messages> checked(const char* text) {
  return check_messages(nlohmann::ordered_json::parse(text));
}

TEST(Messages, AreTakenApart) {
  const auto all = checked(R"([{"role":"system","content":"Be brief."},
                               {"role":"user","content":"hello"},
                               {"role":"assistant","content":"A"}])");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->system, "Be brief.");
  EXPECT_EQ(all->turns.size(), 2U);
  const auto none = checked("[]");
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->system.empty() && none->turns.is_array() && none->turns.empty());
}

TEST(Messages, AnythingElseIsRefused) {
  for (const char* text :
       {"null", "{}", "\"hello\"", "[1]", "[[]]", "[{}]", R"([{"role":"user"}])",
        R"([{"role":"user","content":1}])", R"([{"role":1,"content":"x"}])",
        R"([{"role":"tool","content":"x"}])", R"([{"role":"user","content":"x","more":1}])",
        R"([{"role":"user","content":"x"},{"role":"system","content":"x"}])"}) {
    const auto refused = checked(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::corrupt_data);
    EXPECT_FALSE(refused.error().hint.empty());
  }
}

}  // namespace
}  // namespace headrace::cli
