#include "model/hf/hf_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace headrace {
namespace {

using nlohmann::json;

json written_generation(const Metadata& metadata) {
  return json::parse(hf_generation_config(metadata));
}

TEST(HfGenerationConfig, SaysIdsAndSampling) {
  Metadata metadata;
  EXPECT_EQ(written_generation(metadata), json::object());
  metadata.set("tokenizer.ggml.bos_token_id", uint64_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", uint64_t{2});
  EXPECT_EQ(written_generation(metadata), json({{"bos_token_id", 1}, {"eos_token_id", 2}}));
  metadata.set("tokenizer.ggml.eot_token_id", uint64_t{7});
  metadata.set("tokenizer.ggml.eom_token_id", uint64_t{2});
  metadata.set("general.sampling.temp", 0.7);
  metadata.set("general.sampling.top_k", 40.0);
  metadata.set("general.sampling.penalty_repeat", 1.1);
  EXPECT_EQ(written_generation(metadata), json({{"bos_token_id", 1},
                                                {"eos_token_id", {2, 7}},
                                                {"do_sample", true},
                                                {"temperature", 0.7},
                                                {"top_k", 40},
                                                {"repetition_penalty", 1.1}}));
  metadata.set("general.sampling.temp", 0.0);
  EXPECT_EQ(written_generation(metadata)["do_sample"], false);
  EXPECT_FALSE(written_generation(metadata).contains("temperature"));
}

TEST(HfGenerationConfig, LeavesOutIdsThatAreNoneAndNumbersThatAreNot) {
  for (const int64_t none : {int64_t{-1}, int64_t{UINT32_MAX}, INT64_MAX, INT64_MIN}) {
    Metadata metadata;
    for (const char* name : {"bos", "eos", "eot", "eom"}) {
      metadata.set("tokenizer.ggml." + std::string(name) + "_token_id", none);
    }
    EXPECT_EQ(written_generation(metadata), json::object()) << none;
  }
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double odd : {kInfinite, -kInfinite, std::nan(""), 1e300, -1e300}) {
    Metadata metadata;
    for (const char* name : {"temp", "top_k", "top_p", "min_p", "penalty_repeat"}) {
      metadata.set("general.sampling." + std::string(name), odd);
    }
    EXPECT_EQ(written_generation(metadata), json::object()) << odd;
  }
}

}  // namespace
}  // namespace headrace
