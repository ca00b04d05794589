// See bench.h.
#include "app/bench.h"

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "app/step_cost.h"
#include "base/clock.h"
#include "base/os/machine_load.h"
#include "base/os/system_limits.h"
#include "engine/scheduler/sequence_group.h"
#include "model/registry.h"

namespace headrace {
namespace {

/// Steps of decoding that are not measured: caches, branch predictors and threads get warm.
constexpr int64_t kWarmUpSteps = 16;
/// Of one measurement of how fast memory is read.
constexpr double kBenchReadSeconds = 0.15;

constexpr std::string_view kBenchText =
    "The mill stood where the valley narrows. Above it the stream was led into a channel, level "
    "with the hillside, and kept its height while the river fell away below. At the end of the "
    "channel a gate let the water through onto the wheel; 24 buckets, each as wide as a door, took "
    "it down again. In a dry summer the miller ground two sacks a day, after rain eleven, and he "
    "wrote every one of them into a book: date, weight, grain, and whose it was.\n";

/// `count` tokens of ordinary text, over and over, from another place for each sequence.
Result<std::vector<TokenId>> text_tokens(const OpenedModel& model, int64_t count, size_t sequence) {
  HEADRACE_ASSIGN(std::vector<TokenId> text,
                  model.tokenizer->encode(kBenchText, EncodeOptions{.add_special = false}));
  if (text.empty()) text = {0};
  std::vector<TokenId> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = text[(i + 11 * sequence) % text.size()];
  return out;
}

class Bench {
 public:
  Bench(const OpenedModel& model, const std::vector<BenchTest>& tests, int64_t repetitions,
        const BenchHooks& hooks, const ModelConfig& config)
      : model_(model),
        tests_(tests),
        repetitions_(repetitions),
        hooks_(hooks),
        backend_(*model.backend),
        cost_(model.model->weight_work(),
              {model.model->cache_specs().begin(), model.model->cache_specs().end()}, model.kv_type,
              config.num_heads * config.head_dim) {}

  Result<BenchResult> run() {
    HEADRACE_TRY(prepare());
    for (const BenchTest& test : tests_) {
      BenchRow row;
      row.test = test;
      HEADRACE_TRY(measure_limits(test));
      HEADRACE_TRY(measure(row));
      result_.rows.push_back(std::move(row));
      // Once more: what the machine can do may have changed meanwhile, and a bound is its best.
      HEADRACE_TRY(measure_limits(test));
    }
    for (BenchRow& row : result_.rows) set_bound(row);
    result_.peak_instruction = backend_.peak_instruction();
    return std::move(result_);
  }

 private:
  Result<void> prepare() {
    SequenceGroupOptions options;
    options.kv_type = model_.kv_type;
    options.max_tokens = bench_sequence_tokens(tests_);
    options.block_tokens = model_.options.block_tokens;
    options.chunk_tokens = model_.options.chunk_tokens;
    group_ = make_sequence_group(*model_.model, options);
    for (size_t i = 0; i < options.max_tokens.size(); ++i) {
      HEADRACE_ASSIGN(auto tokens, text_tokens(model_, options.max_tokens[i], i));
      texts_.push_back(std::move(tokens));
    }
    filled_.resize(texts_.size(), 0);
    return {};
  }

  Result<void> go_on() const {
    if (!hooks_.should_stop()) return {};
    return Error{ErrorCode::cancelled, "interrupted", "", ""};
  }

  Result<void> report(const BenchTest& test, std::string stage) const {
    hooks_.on_progress({bench_test_name(test), std::move(stage)});
    return go_on();
  }

  /// The steps of a test, as they are run.
  std::vector<StepShape> steps_of(const BenchTest& test) const {
    std::vector<StepShape> steps;
    if (test.n_prompt > 0) {
      const int64_t chunk = model_.options.chunk_tokens;
      for (int64_t done = 0; done < test.n_prompt; done += chunk) {
        const int64_t rows = std::min(chunk, test.n_prompt - done);
        steps.push_back({.rows = rows,
                         .first_position = done,
                         .logit_rows = done + rows == test.n_prompt ? 1 : 0});
      }
      return steps;
    }
    for (int64_t i = 0; i < test.n_gen; ++i) {
      steps.push_back({.num_sequences = test.parallel,
                       .first_position = test.depth + i,
                       .logit_rows = test.parallel});
    }
    return steps;
  }

  /// Bytes that a step of the test reads on average: reading is measured over so much memory, since
  /// a small model may stay in a cache from one step to the next.
  uint64_t read_bytes(const BenchTest& test) const {
    Work all;
    const auto steps = steps_of(test);
    for (const StepShape& step : steps) all += cost_.of(step);
    const auto bytes = static_cast<uint64_t>(all.bytes / static_cast<double>(steps.size()));
    return std::min(bytes, kMaxReadBytes);
  }

  Result<void> measure_limits(const BenchTest& test) {
    HEADRACE_TRY(report(test, "limits of the machine"));
    result_.peak_macs_per_second =
        std::max(result_.peak_macs_per_second, backend_.measure_peak_macs());
    const uint64_t bytes = read_bytes(test);
    double& best = read_rates_[bytes];
    best = std::max(best, backend_.measure_read_rate(bytes, kBenchReadSeconds));
    return {};
  }

  /// Puts the first `depth` tokens of the sequence's text behind it, and nothing else.
  Result<void> set_depth(size_t sequence, int64_t depth) {
    int64_t& filled = filled_[sequence];
    filled = std::min(filled, depth);
    group_->rewind(sequence, filled);
    while (filled < depth) {
      HEADRACE_TRY(go_on());
      const int64_t rows = std::min(depth - filled, model_.options.chunk_tokens);
      HEADRACE_TRY(group_->feed(
          sequence, std::span<const TokenId>(texts_[sequence])
                        .subspan(static_cast<size_t>(filled), static_cast<size_t>(rows))));
      filled += rows;
    }
    return {};
  }

  Result<void> run_prompt(int64_t n_prompt) {
    group_->rewind(0, 0);
    HEADRACE_TRY(
        group_->feed(0, std::span<const TokenId>(texts_[0]).first(static_cast<size_t>(n_prompt))));
    filled_[0] = n_prompt;
    return {};
  }

  /// From the state of set_depth(), which it leaves with `num_steps` tokens more.
  Result<void> run_decode(const BenchTest& test, int64_t num_steps) {
    next_.clear();
    for (size_t i = 0; i < static_cast<size_t>(test.parallel); ++i) {
      next_.push_back(texts_[i][static_cast<size_t>(test.depth)]);
    }
    for (int64_t i = 0; i < num_steps; ++i) {
      HEADRACE_TRY(go_on());
      HEADRACE_TRY(group_->decode(next_));
    }
    return {};
  }

  Result<void> rewind_to(const BenchTest& test) {
    for (size_t i = 0; i < static_cast<size_t>(test.parallel); ++i) {
      HEADRACE_TRY(set_depth(i, test.depth));
    }
    return {};
  }

  Result<void> repeat(const BenchTest& test, bool is_warm_up) {
    if (test.n_prompt > 0) return run_prompt(test.n_prompt);
    return run_decode(test, is_warm_up ? std::min(test.n_gen, kWarmUpSteps) : test.n_gen);
  }

  Result<void> measure(BenchRow& row) {
    const BenchTest& test = row.test;
    if (test.n_gen > 0) {
      HEADRACE_TRY(report(test, "filling"));
      HEADRACE_TRY(rewind_to(test));
    }
    HEADRACE_TRY(report(test, "warming up"));
    HEADRACE_TRY(repeat(test, true));

    MeasuredStretch stretch;
    stretch.num_threads = backend_.num_threads();
    stretch.num_processors = usable_processors();
    stretch.before = machine_load();
    for (int64_t i = 0; i < repetitions_; ++i) {
      HEADRACE_TRY(report(test, std::to_string(i + 1) + " of " + std::to_string(repetitions_)));
      if (test.n_gen > 0) HEADRACE_TRY(rewind_to(test));
      const int64_t begin = clock_.now_ns();
      HEADRACE_TRY(repeat(test, false));
      const double seconds =
          1e-9 * static_cast<double>(std::max<int64_t>(clock_.now_ns() - begin, 1));
      row.samples.push_back(static_cast<double>(test.num_tokens()) / seconds);
      stretch.seconds += seconds;
    }
    stretch.after = machine_load();
    row.rate = summarize(row.samples);
    row.unsteady = unsteady_reasons(row.rate, stretch);
    return {};
  }

  void set_bound(BenchRow& row) const {
    row.read_bytes = read_bytes(row.test);
    // Less memory is not read more slowly than more.
    for (const auto& [bytes, rate] : read_rates_) {
      if (bytes >= row.read_bytes) {
        row.read_bytes_per_second = std::max(row.read_bytes_per_second, rate);
      }
    }
    const MachineLimits limits{row.read_bytes_per_second, result_.peak_macs_per_second};
    Work all;
    double seconds = 0;
    for (const StepShape& step : steps_of(row.test)) {
      const Work work = cost_.of(step);
      all += work;
      seconds += std::max(limits.read_seconds(work), limits.compute_seconds(work));
    }
    const auto tokens = static_cast<double>(row.test.num_tokens());
    row.bound = tokens / seconds;
    row.is_bound_by_compute = limits.compute_seconds(all) > limits.read_seconds(all);
    row.bytes_per_token = all.bytes / tokens;
    row.macs_per_token = all.macs / tokens;
  }

  const OpenedModel& model_;
  const std::vector<BenchTest>& tests_;
  const int64_t repetitions_;
  const BenchHooks& hooks_;
  Backend& backend_;
  const StepCost cost_;
  const SystemClock clock_;
  std::unique_ptr<SequenceGroup> group_;
  std::vector<std::vector<TokenId>> texts_;  ///< by sequence
  /// By sequence: tokens of its text that it holds before anything else.
  std::vector<int64_t> filled_;
  std::vector<TokenId> next_;
  std::map<uint64_t, double> read_rates_;  ///< best seen, by size
  BenchResult result_;
};

}  // namespace

Result<BenchResult> run_bench(const OpenedModel& model, const std::vector<BenchTest>& tests,
                              int64_t repetitions, const BenchHooks& hooks) {
  if (tests.empty()) return BenchResult{};
  HEADRACE_ASSIGN(const RecognizedModel recognized, recognize(*model.checkpoint));
  try {
    return Bench(model, tests, repetitions, hooks, recognized.config).run();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "out of memory while measuring", "",
                 "use smaller -p, -n, -d or -npl"};
  }
}

}  // namespace headrace
