// The reference path against float32 transformers: NLL of every position, the best of the last one,
// and greedy tokens, fed the right ones and left to run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "engine/engine_impl.h"
#include "golden/golden_data.h"
#include "sampling/logprobs.h"

namespace headrace::golden {
namespace {

constexpr double kMaxNllDifference = 1e-3;
constexpr double kMaxMeanNllDifference = 1e-4;
constexpr double kMaxTopDifference = 1e-3;

/// The worst deviations over all cases of a model.
struct Worst {
  double nll = 0;
  double mean_nll = 0;
  double top = 0;
};

std::unique_ptr<Session> session_for(Model& model, const Case& one, KvType kv_type) {
  return make_session(
      model, {.kv_type = kv_type,
              .max_tokens = static_cast<int64_t>(one.input_ids.size() + one.greedy.size())});
}

void check_prompt(Session& session, const Case& one, Worst& worst) {
  std::vector<double> nll;
  std::vector<float> last;
  const auto fed = session.feed(
      one.input_ids, LogitsFor::all, [&](int64_t position, std::span<const float> logits) {
        const auto next = static_cast<size_t>(position) + 1;
        if (next == one.input_ids.size()) {
          last.assign(logits.begin(), logits.end());
          return;
        }
        nll.push_back(log_sum_exp(logits) -
                      static_cast<double>(logits[static_cast<size_t>(one.input_ids[next])]));
      });
  ASSERT_TRUE(fed.ok()) << fed.error().to_string();

  ASSERT_EQ(nll.size(), one.token_nll.size()) << one.id;
  double sum = 0;
  for (size_t i = 0; i < nll.size(); ++i) {
    const double difference = std::abs(nll[i] - one.token_nll[i]);
    EXPECT_LE(difference, kMaxNllDifference) << one.id << " position " << i;
    worst.nll = std::max(worst.nll, difference);
    sum += nll[i];
  }
  const double mean_difference = std::abs(sum / static_cast<double>(nll.size()) - one.mean_nll);
  EXPECT_LE(mean_difference, kMaxMeanNllDifference) << one.id;
  worst.mean_nll = std::max(worst.mean_nll, mean_difference);

  const double normaliser = log_sum_exp(last);
  for (const auto& [id, logprob] : one.last_top20) {
    const double ours = static_cast<double>(last[static_cast<size_t>(id)]) - normaliser;
    EXPECT_NEAR(ours, logprob, kMaxTopDifference) << one.id << " token " << id;
    worst.top = std::max(worst.top, std::abs(ours - logprob));
  }
  EXPECT_EQ(argmax(last), one.greedy.front()) << one.id;
}

// The golden tokens are fed one by one; each step must name the next.
void check_greedy_fed(Session& session, const Case& one) {
  for (size_t i = 0; i + 1 < one.greedy.size(); ++i) {
    TokenId best = -1;
    const auto fed = session.feed(std::span(&one.greedy[i], 1), LogitsFor::last,
                                  [&](int64_t, auto logits) { best = argmax(logits); });
    ASSERT_TRUE(fed.ok());
    ASSERT_EQ(best, one.greedy[i + 1])
        << one.id << " token " << i + 1 << ", margin " << one.greedy_margin[i + 1];
  }
}

// All prompts at once through the engine: the tokens of each are those it gives alone.
void check_greedy_free(Model& model, const std::vector<Case>& cases) {
  EngineOptions options;
  options.kv_type = KvType::f32;
  options.context = 1024;
  options.max_sequences = static_cast<int64_t>(cases.size());
  options.kv_tokens = 4096;
  auto engine = make_engine(model, options);
  ASSERT_TRUE(engine.ok()) << engine.error().to_string();
  std::vector<Stream> streams;
  for (const Case& one : cases) {
    Request request;
    request.prompt = one.input_ids;
    request.sampling.temperature = 0;
    request.stop.max_tokens = static_cast<int64_t>(one.greedy.size());
    request.stop.ignore_eos = true;
    auto stream = (*engine)->submit(std::move(request));
    ASSERT_TRUE(stream.ok()) << stream.error().to_string();
    streams.push_back(std::move(*stream));
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    std::vector<TokenId> tokens;
    while (const auto event = streams[i].next()) {
      if (const auto* token = std::get_if<TokenEvent>(&*event)) tokens.push_back(token->id);
      EXPECT_FALSE(std::holds_alternative<ErrorEvent>(*event));
    }
    EXPECT_EQ(tokens, cases[i].greedy) << cases[i].id;
  }
}

class Golden : public testing::TestWithParam<GoldenModel> {};

TEST_P(Golden, ReferencePathEqualsTransformers) {
  const auto path = model_path(GetParam().file);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no model " << path;
  const auto cases = load_cases(GetParam().reference);
  if (cases.empty()) GTEST_SKIP() << "no reference data";
  const LoadedModel loaded = load(path, Isa::reference, 0);

  Worst worst;
  for (const Case& one : cases) {
    const auto session = session_for(*loaded.model, one, KvType::f32);
    check_prompt(*session, one, worst);
    check_greedy_fed(*session, one);
  }
  check_greedy_free(*loaded.model, cases);
  std::printf("%s: worst NLL difference %.2e, of a mean %.2e, of the top 20 %.2e\n",
              GetParam().reference.c_str(), worst.nll, worst.mean_nll, worst.top);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::ValuesIn(golden_models()),
                         [](const auto& param) { return param.param.reference; });

}  // namespace
}  // namespace headrace::golden
