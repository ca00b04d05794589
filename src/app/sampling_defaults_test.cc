#include "app/sampling_defaults.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(SamplingDefaults, DocumentedWhereTheFileIsSilent) {
  std::vector<std::string> warnings;
  const SamplingParams params = sampling_defaults(Metadata{}, warnings);
  EXPECT_FLOAT_EQ(params.temperature, 0.8F);
  EXPECT_EQ(params.top_k, 40);
  EXPECT_FLOAT_EQ(params.top_p, 0.95F);
  EXPECT_FLOAT_EQ(params.min_p, 0.05F);
  EXPECT_FLOAT_EQ(params.repetition_penalty, 1.0F);
  EXPECT_TRUE(warnings.empty());
}

TEST(SamplingDefaults, TheFileWins) {
  Metadata metadata;
  metadata.set("general.sampling.temp", 0.2);
  metadata.set("general.sampling.top_k", int64_t{20});
  metadata.set("general.sampling.top_p", 0.9);
  metadata.set("general.sampling.penalty_repeat", 1.1);
  std::vector<std::string> warnings;
  const SamplingParams params = sampling_defaults(metadata, warnings);
  EXPECT_FLOAT_EQ(params.temperature, 0.2F);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_FLOAT_EQ(params.top_p, 0.9F);
  EXPECT_FLOAT_EQ(params.min_p, 0.05F);
  EXPECT_FLOAT_EQ(params.repetition_penalty, 1.1F);
  EXPECT_TRUE(warnings.empty());
}

TEST(SamplingDefaults, NonsenseIsIgnoredAloud) {
  Metadata metadata;
  metadata.set("general.sampling.temp", -3.0);
  metadata.set("general.sampling.top_p", 7.0);
  metadata.set("general.sampling.min_p", std::string_view("much"));
  std::vector<std::string> warnings;
  const SamplingParams params = sampling_defaults(metadata, warnings);
  EXPECT_FLOAT_EQ(params.temperature, 0.8F);
  EXPECT_FLOAT_EQ(params.top_p, 0.95F);
  EXPECT_FLOAT_EQ(params.min_p, 0.05F);
  ASSERT_EQ(warnings.size(), 3U);
  EXPECT_NE(warnings[0].find("general.sampling.temp"), std::string::npos);
}

}  // namespace
}  // namespace headrace
