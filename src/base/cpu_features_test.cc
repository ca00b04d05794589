#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace {
namespace {

TEST(CpuFeatures, ReferenceIsAlwaysThereAndTheBestIsTheDefault) {
  const auto isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::reference);
  EXPECT_EQ(*choose_isa(""), isas.back() == Isa::amx ? Isa::avx512 : isas.back());
  for (const Isa isa : isas) EXPECT_EQ(*choose_isa(isa_name(isa)), isa);
}

#if defined(__x86_64__)
TEST(CpuFeatures, AmxIsThereForTheAskingAndRefusedWhereItIsMissing) {
  const Isa with[] = {Isa::reference, Isa::avx2, Isa::avx512, Isa::amx};
  EXPECT_EQ(*choose_isa("", with), Isa::avx512);
  EXPECT_EQ(*choose_isa("amx", with), Isa::amx);
  const auto missing = choose_isa("amx", std::span(with).first(3));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::unsupported);
  EXPECT_NE(missing.error().message.find("no amx"), std::string::npos);
  EXPECT_EQ(missing.error().hint, "choose one of reference, avx2, avx512");
  EXPECT_EQ(*choose_isa("", std::span(with).first(1)), Isa::reference);
}
#endif

TEST(CpuFeatures, AnUnknownNameIsAnErrorThatListsTheKnown) {
  const auto choice = choose_isa("sse9");
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(choice.error().where, "");
  EXPECT_NE(choice.error().hint.find("reference"), std::string::npos);
}

TEST(CpuFeatures, KnownNamesAreThoseOfTheArchitecture) {
  const auto names = isa_names();
  for (const Isa isa : available_isas()) {
    EXPECT_NE(std::find(names.begin(), names.end(), isa_name(isa)), names.end()) << isa_name(isa);
  }
#if defined(__aarch64__)
  EXPECT_EQ(names, (std::vector<std::string>{"reference", "neon"}));
  EXPECT_EQ(available_isas().back(), Isa::neon);
#else
  EXPECT_EQ(std::find(names.begin(), names.end(), "neon"), names.end());
  EXPECT_EQ(choose_isa("neon").error().code, ErrorCode::invalid_argument);
#endif
}

}  // namespace
}  // namespace headrace
