#include "headrace/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace headrace {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0)
    return Error{ErrorCode::invalid_argument, "expected an even number, found 3", "x", ""};
  return x / 2;
}

Result<std::string> describe(int x) {
  HEADRACE_ASSIGN(const int h, half(x));
  HEADRACE_TRY(half(h));
  return std::to_string(h);
}

TEST(Result, PassesValuesAndErrorsOn) {
  EXPECT_EQ(*describe(4), "2");
  const auto failed = describe(3);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(describe(6).ok());  // the second step fails
}

TEST(Result, ErrorTextNamesPlaceAndWayOut) {
  Error error{ErrorCode::not_found, "no such file", "a.gguf", "try `headrace list`"};
  EXPECT_EQ(error.to_string(), "a.gguf: no such file (try `headrace list`)");
  EXPECT_EQ(std::move(error).at("run").to_string(),
            "run: a.gguf: no such file (try `headrace list`)");
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(7);
  std::unique_ptr<int> out = std::move(r).value();
  EXPECT_EQ(*out, 7);
}

TEST(Result, VoidIsOkByDefault) {
  EXPECT_TRUE(Result<void>().ok());
  EXPECT_FALSE(Result<void>(Error{}).ok());
}

TEST(Result, ReadingTheWrongSideThrows) {
  Result<int> r = Error{};
  EXPECT_THROW(r.value(), std::bad_variant_access);
}

}  // namespace
}  // namespace headrace
