// The fast paths on real models: fed the golden tokens, their argmax is the golden one wherever the
// reference is sure of it; and on each path the logits do not depend on threads or chunks, bit for
// bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "golden/golden_data.h"
#include "sampling/logprobs.h"

namespace headrace::golden {
namespace {

/// Margins below this may be decided by rounding.
constexpr double kSureMargin = 0.15;

struct PathParam {
  GoldenModel model;
  Isa isa = Isa::reference;
};

std::vector<PathParam> path_params() {
  std::vector<PathParam> out;
  for (const GoldenModel& model : golden_models()) {
    for (const Isa isa : available_isas()) out.push_back({model, isa});
  }
  return out;
}

std::string path_name(const testing::TestParamInfo<PathParam>& info) {
  return info.param.model.reference + "_" + std::string(isa_name(info.param.isa));
}

/// The KV type a user gets on this path.
KvType default_kv_type(Isa isa) {
  return isa == Isa::reference ? KvType::f32 : kDefaultKvType;
}

class Paths : public testing::TestWithParam<PathParam> {
 protected:
  void SetUp() override {
    path_ = model_path(GetParam().model.file);
    if (!std::filesystem::exists(path_)) GTEST_SKIP() << "no model " << path_;
    cases_ = load_cases(GetParam().model.reference);
    if (cases_.empty()) GTEST_SKIP() << "no reference data";
  }

  std::filesystem::path path_;
  std::vector<Case> cases_;
};

TEST_P(Paths, SureGreedyTokensAreEqual) {
  if (GetParam().isa == Isa::reference) GTEST_SKIP() << "reference_test.cc asks for more";
  const LoadedModel loaded = load(path_, GetParam().isa, 0);
  int num_sure = 0;
  int num_equal = 0;
  int num_all = 0;
  for (const Case& one : cases_) {
    const auto num_tokens = static_cast<int64_t>(one.input_ids.size() + one.greedy.size());
    const auto session = make_session(
        *loaded.model, {.kv_type = default_kv_type(GetParam().isa), .max_tokens = num_tokens});
    for (size_t i = 0; i < one.greedy.size(); ++i) {
      const std::span<const TokenId> fed =
          i == 0 ? std::span(one.input_ids) : std::span(&one.greedy[i - 1], 1);
      TokenId best = -1;
      const auto result =
          session->feed(fed, LogitsFor::last, [&](int64_t, auto logits) { best = argmax(logits); });
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      ++num_all;
      if (best == one.greedy[i]) ++num_equal;
      if (one.greedy_margin[i] < kSureMargin) continue;
      ++num_sure;
      EXPECT_EQ(best, one.greedy[i])
          << one.id << " token " << i << ", margin " << one.greedy_margin[i];
    }
  }
  std::printf("%s %s: %d of %d tokens equal, %d of them sure\n", GetParam().model.reference.c_str(),
              loaded.backend->description().c_str(), num_equal, num_all, num_sure);
  EXPECT_GT(num_sure, 0);
}

/// The logits of the last rows of a prompt: read in `chunk` tokens a step up to the last
/// kScoredRows, whose logits are all kept.
class Reader {
 public:
  static constexpr size_t kScoredRows = 4;

  Reader(const LoadedModel& loaded, std::span<const TokenId> tokens, KvType kv_type)
      : loaded_(loaded), tokens_(tokens), kv_type_(kv_type) {}

  std::vector<float> read(int64_t chunk) const {
    const auto count = static_cast<int64_t>(tokens_.size());
    const auto session = make_session(
        *loaded_.model,
        {.kv_type = kv_type_, .max_tokens = count, .block_tokens = 16, .chunk_tokens = chunk});
    std::vector<float> out;
    const auto keep = [&](int64_t, std::span<const float> logits) {
      out.insert(out.end(), logits.begin(), logits.end());
    };
    const size_t num_first = tokens_.size() - kScoredRows;
    EXPECT_TRUE(session->feed(tokens_.first(num_first), LogitsFor::none, keep).ok());
    EXPECT_TRUE(session->feed(tokens_.subspan(num_first), LogitsFor::all, keep).ok());
    return out;
  }

 private:
  const LoadedModel& loaded_;
  std::span<const TokenId> tokens_;
  KvType kv_type_;
};

bool bit_equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(Paths, LogitsDoNotDependOnThreadsOrChunks) {
  const auto longest = std::max_element(
      cases_.begin(), cases_.end(),
      [](const Case& a, const Case& b) { return a.input_ids.size() < b.input_ids.size(); });
  // Longer than the largest chunk.
  constexpr size_t kNumTokens = 270;
  const auto tokens =
      std::span(longest->input_ids).first(std::min(kNumTokens, longest->input_ids.size()));
  const KvType kv_type = default_kv_type(GetParam().isa);
  const auto whole = static_cast<int64_t>(tokens.size());

  const LoadedModel one_thread = load(path_, GetParam().isa, 1);
  const std::vector<float> expected = Reader(one_thread, tokens, kv_type).read(whole);
  ASSERT_TRUE(check_logits(expected).ok());
  for (const int num_threads : {2, 3, 4}) {
    const LoadedModel loaded = load(path_, GetParam().isa, num_threads);
    const Reader reader(loaded, tokens, kv_type);
    EXPECT_TRUE(bit_equal(reader.read(whole), expected)) << num_threads << " threads";
    if (num_threads != 2) continue;
    for (const int64_t chunk : {1, 7, 64, 256}) {
      EXPECT_TRUE(bit_equal(reader.read(chunk), expected)) << "chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Paths, testing::ValuesIn(path_params()), path_name);

}  // namespace
}  // namespace headrace::golden
