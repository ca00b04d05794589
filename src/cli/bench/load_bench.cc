// See load_bench.h.
#include "cli/bench/load_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/os/signals.h"
#include "cli/bench/load_report.h"
#include "cli/report.h"

namespace headrace::cli {
namespace {

using Rates = std::shared_ptr<const std::vector<BenchRow>>;

/// The tests of a plan's rates, up to the largest batch that any plan has, so that plans which
/// differ in their load alone share them.
std::vector<BenchTest> tests_of(const LoadPlan& plan, const std::vector<LoadPlan>& plans,
                                int64_t chunk_tokens, int64_t context_length) {
  int64_t most = 1;
  for (const LoadPlan& other : plans) most = std::max(most, other.max_batch());
  return rate_tests(plan.spec, chunk_tokens, most, context_length);
}

Result<void> check_needs(const std::vector<LoadPlan>& plans, bool has_rates,
                         const ModelConfig& config, const MemoryNeeds& needs,
                         uint64_t available_bytes) {
  HEADRACE_TRY(check_load_fits(plans, config, needs, available_bytes));
  if (!has_rates) return {};
  for (const LoadPlan& plan : plans) {
    const auto tests = tests_of(plan, plans, needs.chunk_tokens, config.context_length);
    auto fits = check_bench_fits(tests, config, needs, available_bytes);
    if (fits.ok()) continue;
    fits.error().hint =
        "use a smaller -np or shorter requests, or leave these tests out with --no-ideal";
    return fits;
  }
  return {};
}

/// All plans on one opened model.
class ModelLoads {
 public:
  ModelLoads(OpenedModel& model, const std::vector<LoadPlan>& plans, int64_t repetitions,
             std::string number)
      : model_(model),
        plans_(plans),
        repetitions_(repetitions),
        number_(std::move(number)),
        setting_(describe(model)) {}

  /// Errors come behind the entries of what was measured before them.
  Result<void> run(std::vector<LoadEntry>& entries) {
    for (size_t i = 0; i < plans_.size(); ++i) {
      const LoadPlan& plan = plans_[i];
      HEADRACE_ASSIGN(Rates rates, rates_for(plan));
      const std::string number =
          plans_.size() > 1 ? fmt::format("{} of {}: ", i + 1, plans_.size()) : "";
      HEADRACE_ASSIGN(LoadResult result,
                      run_load(model_, plan, std::move(rates), hooks(number_ + number)));
      const bool was_interrupted = result.was_interrupted;
      entries.push_back({setting_, std::move(result)});
      if (was_interrupted) return Error{ErrorCode::cancelled, "interrupted", "", ""};
    }
    return {};
  }

 private:
  BenchHooks hooks(const std::string& number) {
    return {[this, number](const BenchProgress& now) {
              line_.show(number + now.test + ": " + now.stage);
            },
            [] { return InterruptGuard::interrupted(); }};
  }

  Result<Rates> rates_for(const LoadPlan& plan) {
    if (repetitions_ == 0) return Rates();
    const auto tests =
        tests_of(plan, plans_, model_.options.chunk_tokens, model_.model->info().context_length);
    std::string key;
    for (const BenchTest& test : tests) key += bench_test_name(test) + "\n";
    Rates& known = rates_[key];
    if (known) return known;
    HEADRACE_ASSIGN(BenchResult measured, run_bench(model_, tests, repetitions_, hooks(number_)));
    setting_->peak_macs_per_second = measured.peak_macs_per_second;
    setting_->peak_instruction = measured.peak_instruction;
    known = std::make_shared<const std::vector<BenchRow>>(std::move(measured.rows));
    return known;
  }

  OpenedModel& model_;
  const std::vector<LoadPlan>& plans_;
  const int64_t repetitions_;
  const std::string number_;
  const std::shared_ptr<BenchSetting> setting_;
  std::map<std::string, Rates> rates_;  ///< by the names of their tests
  ProgressLine line_;
};

/// What was measured is in `entries`, also where an error ends it.
Result<void> measure_all(const std::vector<BenchModel>& models, const std::vector<LoadPlan>& plans,
                         int64_t repetitions, std::vector<LoadEntry>& entries) {
  const InterruptGuard guard({.catch_terminate = true});
  for (size_t i = 0; i < models.size(); ++i) {
    HEADRACE_ASSIGN(const auto model, open_model(models[i].path, models[i].options));
    for (const std::string& warning : model->warnings) warn(warning);
    const std::string number =
        models.size() > 1 ? fmt::format("[{} of {}] ", i + 1, models.size()) : "";
    HEADRACE_TRY(ModelLoads(*model, plans, repetitions, number).run(entries));
  }
  return {};
}

void warn_of(const std::vector<LoadEntry>& entries) {
  for (const std::string& sentence : differing_answers(entries)) {
    warn(sentence + ": this is a bug, please report it");
  }
  const LoadEntry* unsteady = nullptr;
  size_t num_unsteady = 0;
  for (const LoadEntry& entry : entries) {
    const LoadSummary& summary = entry.result.summary;
    if (summary.num_ok < summary.num_requests) {
      warn(fmt::format("{}: {} of {} requests failed ({})", load_name(entry.result.plan),
                       summary.num_requests - summary.num_ok, summary.num_requests,
                       summary.errors.begin()->first));
    }
    if (entry.result.unsteady.empty()) continue;
    ++num_unsteady;
    if (unsteady == nullptr) unsteady = &entry;
  }
  if (unsteady != nullptr) {
    warn(fmt::format("{} of {} loads are unsteady: {}", num_unsteady, entries.size(),
                     unsteady->result.unsteady.front()));
  }
}

std::string rendered(const std::string& format, const std::vector<LoadEntry>& entries) {
  if (format == "json") return load_json(entries);
  if (format == "csv") return load_csv(entries);
  if (format == "html") return load_html(entries);
  return load_markdown(entries);
}

/// Tokens that a sequence may have: those of the longest conversation; with a cache of its own size
/// all that the model was made for, since that bounds the cache.
int64_t context_of(const std::vector<LoadPlan>& plans) {
  int64_t longest = 2;
  for (const LoadPlan& plan : plans) {
    if (plan.kv_bytes > 0) return 0;
    longest = std::max(longest, plan.spec.longest());
  }
  return longest;
}

/// Says what ended it, behind what was measured; the exit code.
int ended_early(Error error, size_t num_loads, const BenchOutputArgs& output) {
  const bool was_interrupted = error.code == ErrorCode::cancelled;
  if (num_loads > 0) {
    error.message +=
        fmt::format("; {} {} told of", num_loads, num_loads == 1 ? "load is" : "loads are");
  }
  // The loads are all the JSON there is.
  const int code = fail(error, num_loads == 0 && output.wants_json());
  if (was_interrupted && flush_output()) end_by_interrupt();
  return code;
}

}  // namespace

Result<int> run_load_bench(const BenchModelArgs& model, const std::vector<LoadPlan>& plans,
                           int64_t repetitions, const BenchOutputArgs& output) {
  const auto check = [&plans, repetitions](const ModelConfig& config, const MemoryNeeds& needs,
                                           uint64_t available) {
    return check_needs(plans, repetitions > 0, config, needs, available);
  };
  HEADRACE_ASSIGN(const auto models, bench_models(model, context_of(plans), check));
  std::vector<LoadEntry> entries;
  const auto measured = measure_all(models, plans, repetitions, entries);
  if (entries.empty() && !measured.ok()) return ended_early(measured.error(), 0, output);
  warn_of(entries);
  HEADRACE_TRY(
      write_output(output, [&](const std::string& format) { return rendered(format, entries); }));
  if (!measured.ok()) return ended_early(measured.error(), entries.size(), output);
  const bool all_failed = std::any_of(entries.begin(), entries.end(), [](const LoadEntry& entry) {
    return entry.result.summary.num_ok == 0;
  });
  return all_failed ? kFailed : kDone;
}

}  // namespace headrace::cli
