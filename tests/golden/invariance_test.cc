// One answer whatever the company, on real models: the same request again and again, among others
// of all kinds, under batch limits, chunk sizes, with and without the prefix cache, and with so
// little memory that sequences begin again. Every copy must give the same tokens from the same
// logits, bit for bit.
//
// A few dozen copies by default; HEADRACE_LONG_TESTS=1 runs 1000 greedy and 200 sampled ones.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "base/random.h"
#include "engine/backend_runner.h"
#include "engine/engine_impl.h"
#include "golden/golden_data.h"

namespace headrace::golden {
namespace {

constexpr KvType kKvType = kDefaultKvType;

/// Copies of a request carry its name as their owner; others have none.
using Row = std::pair<std::string, size_t>;  // whose, and after how many tokens

uint64_t hash_of(std::span<const float> row) {
  uint64_t hash = 0;
  for (const float value : row) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = mix64(hash ^ bits);
  }
  return hash;
}

/// The model with a note of every row of logits, all of which it computes.
class WatchedModel final : public Model {
 public:
  explicit WatchedModel(Model& model) : model_(model) {
    row_.resize(static_cast<size_t>(model.info().vocab_size));
  }
  const ModelInfo& info() const override { return model_.info(); }
  WeightWork weight_work() const override { return model_.weight_work(); }
  Backend& backend() const override { return model_.backend(); }
  std::span<const CacheSpec> cache_specs() const override { return model_.cache_specs(); }
  void reserve(int64_t max_rows, int64_t max_logit_rows) override {
    model_.reserve(max_rows, max_logit_rows);
  }
  Result<void> check_weights() const override { return model_.check_weights(); }
  Tensor embeddings() const override { return model_.embeddings(); }

  Tensor forward(const StepInput& step) override {
    StepInput whole = step;
    whole.num_top = 0;
    const Tensor logits = model_.forward(whole);
    hashes.clear();
    for (size_t i = 0; i < step.logit_rows.size(); ++i) {
      model_.backend().read_row(logits, static_cast<int64_t>(i), row_);
      hashes.push_back(hash_of(row_));
    }
    return logits;
  }

  std::vector<uint64_t> hashes;  ///< of the last step

 private:
  Model& model_;
  std::vector<float> row_;
};

/// The runner with a note of whose the rows were.
class WatchedRunner final : public ModelRunner {
 public:
  WatchedRunner(WatchedModel& model, const BackendRunnerOptions& options,
                std::span<const int64_t> num_blocks, const Clock& clock,
                std::map<Row, std::set<uint64_t>>& seen)
      : model_(model), runner_(model, options, num_blocks, clock), seen_(seen) {}
  const ModelInfo& info() const override { return runner_.info(); }
  int64_t max_logit_rows() const override { return runner_.max_logit_rows(); }
  void launch(Batch& batch) override {
    runner_.launch(batch);
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const BatchSample& sample = batch.samples[i];
      const std::string& owner = sample.sequence->request->owner;
      if (owner.empty() || sample.scored_position >= 0) continue;
      seen_[{owner, sample.sequence->tokens.size()}].insert(model_.hashes[i]);
    }
  }
  Result<void> collect(Batch& batch) override { return runner_.collect(batch); }
  std::string device() const override { return runner_.device(); }
  uint64_t block_bytes(size_t group) const override { return runner_.block_bytes(group); }
  void read_block(size_t group, int32_t block, int64_t num_tokens,
                  std::span<std::byte> out) const override {
    runner_.read_block(group, block, num_tokens, out);
  }
  void write_block(size_t group, int32_t block, std::span<const std::byte> in) override {
    runner_.write_block(group, block, in);
  }

 private:
  WatchedModel& model_;
  BackendRunner runner_;
  std::map<Row, std::set<uint64_t>>& seen_;
};

struct Setting {
  int64_t max_sequences;
  int64_t chunk_tokens;
  bool prefix_cache;
  bool is_tight;  ///< memory for two of the longest only
  int64_t context = 640;
};

class Invariance : public testing::TestWithParam<GoldenModel> {
 protected:
  void SetUp() override {
    const auto path = model_path(GetParam().file);
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no model " << path;
    loaded_ = load(path, choose_isa("").value(), 0);
    const char* long_tests = std::getenv("HEADRACE_LONG_TESTS");
    is_long_ = long_tests != nullptr && *long_tests == '1';
    std::mt19937 random(3);
    // Longer than Gemma's windows of 512.
    greedy_ = some_request(random, 560, 12);
    greedy_.sampling.temperature = 0;
    greedy_.owner = "greedy";
    sampled_ = some_request(random, 40, 24);
    sampled_.sampling.temperature = 1.0F;
    sampled_.sampling.top_p = 0.95F;
    sampled_.sampling.seed = 77;
    sampled_.num_logprobs = 3;
    sampled_.owner = "sampled";
  }

  Request some_request(std::mt19937& random, size_t num_prompt, int64_t max_tokens) const {
    Request request;
    const auto vocab_size = static_cast<uint32_t>(loaded_.model->info().vocab_size);
    for (size_t i = 0; i < num_prompt; ++i) {
      request.prompt.push_back(static_cast<TokenId>(random() % vocab_size));
    }
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_eos = true;
    request.sampling.seed = random();
    return request;
  }

  /// Of all kinds that there are, some beginning like the watched ones.
  Request some_other(std::mt19937& random, bool is_tight) const {
    const int64_t max_tokens = is_tight ? 100 + random() % 200 : random() % 30;
    Request request = some_request(random, 1 + random() % 120, max_tokens);
    if (random() % 4 == 0) {
      request.prompt.assign(greedy_.prompt.begin(), greedy_.prompt.begin() + 1 + random() % 300);
      request.prompt.push_back(5);
    }
    if (random() % 6 == 0) request.num_choices = 3;
    if (random() % 6 == 0) request.num_prompt_logprobs = 2;
    if (random() % 3 == 0) request.sampling.top_k = 40;
    if (random() % 4 == 0) request.priority = static_cast<int32_t>(random() % 5) - 2;
    return request;
  }

  std::unique_ptr<EngineImpl> make_watched(const Setting& setting) {
    EngineOptions options;
    options.kv_type = kKvType;
    options.context = setting.context;
    options.max_sequences = setting.max_sequences;
    options.chunk_tokens = std::max(setting.chunk_tokens, setting.max_sequences);
    options.prefix_cache = setting.prefix_cache;
    options.kv_tokens = (setting.is_tight ? 2 : setting.max_sequences) * options.context;
    const auto geometries = cache_geometries(*loaded_.model, options.block_tokens);
    const auto num_blocks = engine_blocks(options, geometries);
    const auto clock = std::make_shared<SystemClock>();
    EngineParts parts;
    parts.runner = std::make_unique<WatchedRunner>(
        *watched_,
        BackendRunnerOptions{.kv_type = kKvType,
                             .block_tokens = options.block_tokens,
                             .max_step_rows = options.chunk_tokens,
                             .max_sequences = options.max_sequences},
        num_blocks, *clock, seen_);
    parts.clock = clock;
    parts.random = std::make_shared<SystemRandom>();
    return std::make_unique<EngineImpl>(std::move(parts), options, geometries, num_blocks);
  }

  /// The tokens of all choices, in order of choice.
  static std::vector<TokenId> read(Stream& stream) {
    std::map<int32_t, std::vector<TokenId>> by_choice;
    while (const auto event = stream.next()) {
      if (const auto* token = std::get_if<TokenEvent>(&*event)) {
        by_choice[token->choice].push_back(token->id);
      } else if (const auto* error = std::get_if<ErrorEvent>(&*event)) {
        ADD_FAILURE() << error->error.to_string();
      }
    }
    std::vector<TokenId> out;
    for (const auto& [choice, tokens] : by_choice) {
      out.insert(out.end(), tokens.begin(), tokens.end());
    }
    return out;
  }

  void run(const Setting& setting, int num_greedy, int num_sampled, std::mt19937& random) {
    watched_ = std::make_unique<WatchedModel>(*loaded_.model);
    const auto engine = make_watched(setting);
    std::vector<std::pair<int, Stream>> streams;
    int num_left[] = {num_greedy, num_sampled, (num_greedy + num_sampled) / 3};
    while (num_left[0] + num_left[1] + num_left[2] > 0) {
      const auto kind = static_cast<int>(random() % 3);
      if (num_left[kind]-- <= 0) {
        num_left[kind] = 0;
        continue;
      }
      auto stream = engine->submit(kind == 0   ? greedy_
                                   : kind == 1 ? sampled_
                                               : some_other(random, setting.is_tight && is_long_));
      ASSERT_TRUE(stream.ok()) << stream.error().to_string();
      streams.emplace_back(kind, std::move(*stream));
      if (random() % 3 == 0) engine->step(false);
    }
    do {
      engine->step(false);  // which is when the last one is taken in
    } while (!engine->scheduler().is_idle());
    engine->scheduler().check_invariants();
    for (auto& [kind, stream] : streams) {
      const auto tokens = read(stream);
      if (kind < 2) outputs_[kind].insert(tokens);
    }
    num_preemptions_ += engine->stats().rung(MemoryRung::preempt);
    num_found_ += engine->stats().prefix_hit_tokens;
  }

  LoadedModel loaded_;
  bool is_long_ = false;
  Request greedy_;
  Request sampled_;
  std::unique_ptr<WatchedModel> watched_;
  std::map<Row, std::set<uint64_t>> seen_;
  std::set<std::vector<TokenId>> outputs_[2];
  int64_t num_preemptions_ = 0;
  int64_t num_found_ = 0;
};

TEST_P(Invariance, EveryCopyGivesTheSame) {
  const std::vector<Setting> settings = {
      {1, 512, true, false},  {1, 64, false, false}, {4, 16, true, true},    {8, 128, false, true},
      {16, 100, true, false}, {16, 512, true, true}, {64, 64, false, false}, {64, 256, true, true},
  };
  const auto num_settings = static_cast<int>(settings.size());
  std::mt19937 random(11);
  int num_greedy = 0;
  int num_sampled = 0;
  for (const Setting& setting : settings) {
    // Without the cache every copy is computed anew: fewer of those, and the others make up for it.
    const int greedy = !is_long_ ? 1 : setting.prefix_cache ? 180 : 34;
    const int sampled = is_long_ ? 200 / num_settings : 2;
    run(setting, greedy, sampled, random);
    num_greedy += greedy;
    num_sampled += sampled;
  }
  std::printf(
      "%s: %d greedy and %d sampled copies, %zu rows of logits compared, %lld preemptions, "
      "%lld prompt tokens from the cache\n",
      GetParam().reference.c_str(), num_greedy, num_sampled, seen_.size(),
      static_cast<long long>(num_preemptions_), static_cast<long long>(num_found_));
  EXPECT_EQ(outputs_[0].size(), 1U);
  EXPECT_EQ(outputs_[1].size(), 1U);
  EXPECT_EQ(seen_.size(), 12U + 24U);
  for (const auto& [row, hashes] : seen_) {
    EXPECT_EQ(hashes.size(), 1U) << row.first << " after " << row.second << " tokens";
  }
  EXPECT_GT(num_found_, 0);
  if (is_long_) {
    EXPECT_GT(num_preemptions_, 0);
  }
}

// Windows slide over most of it, so that what is found again is not what the first one left.
TEST_P(Invariance, ALongPromptAgainAndAgain) {
  std::mt19937 random(5);
  Request request = some_request(random, 1464, 16);
  request.sampling.temperature = 0;
  watched_ = std::make_unique<WatchedModel>(*loaded_.model);
  std::set<std::vector<TokenId>> outputs;
  for (const bool prefix_cache : {false, true}) {
    const auto engine = make_watched({2, 256, prefix_cache, false, 1600});
    int64_t last_found = 0;
    for (int i = 0; i < (prefix_cache ? 4 : 1); ++i) {
      auto stream = engine->submit(request);
      ASSERT_TRUE(stream.ok()) << stream.error().to_string();
      do {
        engine->step(false);
      } while (!engine->scheduler().is_idle());
      outputs.insert(read(*stream));
      const int64_t found = engine->stats().prefix_hit_tokens;
      EXPECT_EQ(found - last_found, prefix_cache && i > 0 ? 1463 : 0);
      last_found = found;
    }
  }
  EXPECT_EQ(outputs.size(), 1U);
  EXPECT_EQ(outputs.begin()->size(), 16U);
}

INSTANTIATE_TEST_SUITE_P(Models, Invariance, testing::ValuesIn(golden_models()),
                         [](const auto& one) { return one.param.reference; });

}  // namespace
}  // namespace headrace::golden
