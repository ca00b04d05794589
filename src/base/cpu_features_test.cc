#include "base/cpu_features.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(CpuFeatures, ReferenceIsAlwaysThereAndTheBestIsTheDefault) {
  const auto isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::reference);
  EXPECT_EQ(*choose_isa(""), isas.back());
  for (const Isa isa : isas) EXPECT_EQ(*choose_isa(isa_name(isa)), isa);
}

TEST(CpuFeatures, AnUnknownNameIsAnErrorThatListsTheKnown) {
  const auto choice = choose_isa("sse9");
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(choice.error().where, "");
  EXPECT_NE(choice.error().hint.find("reference"), std::string::npos);
}

}  // namespace
}  // namespace headrace
