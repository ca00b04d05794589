// headrace bench: how fast a model runs here, beside what the machine allows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/bench.h"
#include "base/os/signals.h"
#include "cli/bench/bench_output.h"
#include "cli/bench/bench_report.h"
#include "cli/bench/bench_setting.h"
#include "cli/bench/load_bench.h"
#include "cli/bench/load_options.h"
#include "cli/commands.h"
#include "cli/make_option.h"
#include "cli/report.h"

namespace headrace::cli {
namespace {

constexpr int64_t kTestRepetitions = 5;
constexpr int64_t kRateRepetitions = 3;

struct BenchArgs {
  BenchModelArgs model;
  LoadArgs load;
  std::vector<int64_t> prompts, gens, parallels, depths;
  std::optional<int64_t> repetitions;
  BenchOutputArgs output;
};

std::vector<BenchTest> tests_of(const BenchArgs& args) {
  return bench_tests({.prompts = given_or<int64_t>(args.prompts, 512),
                      .gens = given_or<int64_t>(args.gens, 128),
                      .parallels = given_or<int64_t>(args.parallels, 1),
                      .depths = given_or<int64_t>(args.depths, 0)});
}

int64_t longest(const std::vector<BenchTest>& tests) {
  int64_t tokens = 2;
  for (const int64_t length : bench_sequence_tokens(tests)) tokens = std::max(tokens, length);
  return tokens;
}

Result<std::vector<BenchEntry>> measure_all(const std::vector<BenchModel>& settings,
                                            const std::vector<BenchTest>& tests,
                                            int64_t repetitions) {
  std::vector<BenchEntry> entries;
  const InterruptGuard guard({.catch_terminate = true});
  for (size_t i = 0; i < settings.size(); ++i) {
    const std::string number =
        settings.size() > 1 ? fmt::format("[{} of {}] ", i + 1, settings.size()) : "";
    HEADRACE_ASSIGN(const auto model, open_model(settings[i].path, settings[i].options));
    for (const std::string& warning : model->warnings) warn(warning);
    ProgressLine line;
    const BenchHooks hooks = {
        [&](const BenchProgress& now) { line.show(number + now.test + ": " + now.stage); },
        [] { return InterruptGuard::interrupted(); }};
    HEADRACE_ASSIGN(BenchResult result, run_bench(*model, tests, repetitions, hooks));
    const auto setting = describe(*model);
    setting->peak_macs_per_second = result.peak_macs_per_second;
    setting->peak_instruction = result.peak_instruction;
    for (BenchRow& row : result.rows) entries.push_back({setting, std::move(row)});
  }
  return entries;
}

void warn_of(const std::vector<BenchEntry>& entries) {
  size_t num_unsteady = 0;
  for (const BenchEntry& entry : entries) {
    const BenchRow& row = entry.row;
    num_unsteady += row.unsteady.empty() ? 0 : 1;
    if (row.is_above_bound()) {
      warn(
          fmt::format("{}: {:.1f} tokens/s is above the bound of {:.1f}, so the bound is wrong; "
                      "measure again on a quiet machine, and report it if it stays",
                      bench_test_name(row.test), row.rate.max, row.bound));
    }
  }
  if (num_unsteady > 0) {
    warn(fmt::format("{} of {} figures are unsteady: {}", num_unsteady, entries.size(),
                     std::find_if(entries.begin(), entries.end(), [](const BenchEntry& entry) {
                       return !entry.row.unsteady.empty();
                     })->row.unsteady.front()));
  }
}

std::string rendered(const std::string& format, const std::vector<BenchEntry>& entries) {
  if (format == "json") return bench_json(entries);
  if (format == "csv") return bench_csv(entries);
  if (format == "html") return bench_html(entries);
  return bench_markdown(entries);
}

Result<int> run_tests(const BenchArgs& args) {
  const auto tests = tests_of(args);
  if (tests.empty()) {
    return fail_usage("bench",
                      Error{ErrorCode::invalid_argument, "there is nothing to measure", "",
                            "-p or -n must not be 0"},
                      args.output.wants_json());
  }
  const auto check = [tests](const ModelConfig& config, const MemoryNeeds& needs,
                             uint64_t available) {
    return check_bench_fits(tests, config, needs, available);
  };
  HEADRACE_ASSIGN(const auto models, bench_models(args.model, longest(tests), check));
  HEADRACE_ASSIGN(const auto entries,
                  measure_all(models, tests, args.repetitions.value_or(kTestRepetitions)));
  warn_of(entries);
  HEADRACE_TRY(write_output(args.output,
                            [&](const std::string& format) { return rendered(format, entries); }));
  return kDone;
}

/// The loads that are asked for; none: single tests are.
Result<std::vector<LoadPlan>> plans_of(const BenchArgs& args) {
  const auto wrong = [](std::string option, std::string message, std::string hint) {
    return Error{ErrorCode::invalid_argument, std::move(message), std::move(option),
                 std::move(hint)};
  };
  if (!args.load.is_on) {
    const std::string given = first_load_option(args.load);
    if (given.empty()) return std::vector<LoadPlan>{};
    return wrong(given, "needs --load", "add --load to measure many requests at once");
  }
  if (!args.prompts.empty()) {
    return wrong("-p", "has no meaning with --load", "give the length of prompts with --input-len");
  }
  if (!args.gens.empty()) {
    return wrong("-n", "has no meaning with --load",
                 "give the length of answers with --output-len");
  }
  if (!args.depths.empty()) {
    return wrong("-d", "has no meaning with --load",
                 "give the length of prompts with --input-len and --prefix-len");
  }
  return load_plans(args.load, args.parallels);
}

Result<int> run_checked(const BenchArgs& args) {
  const auto plans = plans_of(args);
  if (!plans.ok()) return fail_usage("bench", plans.error(), args.output.wants_json());
  if (const auto right = check_output(args.output); !right.ok()) {
    if (right.error().code != ErrorCode::invalid_argument) return right.error();
    return fail_usage("bench", right.error(), args.output.wants_json());
  }
  if (plans->empty()) return run_tests(args);
  const int64_t repetitions = args.load.no_ideal ? 0 : args.repetitions.value_or(kRateRepetitions);
  return run_load_bench(args.model, *plans, repetitions, args.output);
}

std::vector<Option> test_options(BenchArgs& args) {
  constexpr double kMostTokens = 1 << 24;
  std::vector<Option> options;
  options.push_back(numbers_option("-p,--n-prompt,-npp", "Prompt lengths; 0: no prompt is measured",
                                   &args.prompts, "512", 0, kMostTokens));
  options.push_back(numbers_option("-n,--n-gen,-ntg",
                                   "Tokens to decode; 0: decoding is not measured", &args.gens,
                                   "128", 0, kMostTokens));
  options.push_back(numbers_option(
      "-npl,-np,--parallel,--max-sequences,--max-num-seqs",
      "Sequences that decode at the same time; with --load, so many run while others wait",
      &args.parallels, "1; with --load those of --concurrency, or 16", 1, 1024));
  options.push_back(numbers_option("-d,--n-depth,--depth",
                                   "Tokens that each sequence holds before it decodes",
                                   &args.depths, "0", 0, kMostTokens));
  options.push_back(make_option("-r,--repetitions", "N",
                                "Measurements of each test; with --load, of each rate beside it",
                                &args.repetitions, "5; with --load 3"));
  options.back().min_value = 1;
  options.back().max_value = 1000;
  for (Option& option : options) option.group = "Tests";
  return options;
}

}  // namespace

Command bench_command() {
  auto args = std::make_shared<BenchArgs>();
  Command command;
  command.name = "bench";
  command.summary = "Measure speed, beside what the machine allows";
  command.description =
      "Measures prompts (pp), decoding (tg), decoding behind a context (@ d) and decoding several "
      "sequences at once (x), greedily, each with a warm-up and several repetitions. Figures are "
      "tokens a second over all sequences.\n"
      "Beside each figure stands its bound, from limits measured in the same run with the same "
      "threads: the bytes that the steps must read (weights, keys and values) over the speed of "
      "reading as much memory, and their multiply-adds over the peak of the instruction set; the "
      "slower of the two bounds. A figure above its bound would be a bug of the benchmark.\n"
      "Every number may be a list: 1,8 or a range: 128-1024*2, 0-4096+1024. Lists of -t, "
      "--kv-type, --isa and -ub, and several -m, measure every combination.\n"
      "~ marks figures that moved, or that other programs disturbed.\n"
      "With --load, requests of random tokens arrive at an engine instead, by a rate or from so "
      "many "
      "clients, and what is told are times to the first token, between tokens and to the end, "
      "throughput, how full batches and KV cache were, and which part of the ideal was reached: "
      "the "
      "same tokens at the rates of prompts and of decoding, measured in the same run. Lists of "
      "--rate, --concurrency, -np, --input-len, --output-len and --prefix-len measure every "
      "combination.";
  auto& options = command.options;
  for (Option& option : test_options(*args)) options.push_back(std::move(option));
  for (Option& option : load_options(args->load)) options.push_back(std::move(option));
  for (Option& option : bench_model_options(args->model)) options.push_back(std::move(option));
  for (Option& option : bench_output_options(args->output)) options.push_back(std::move(option));
  command.examples = {
      {"headrace bench", "the default model: a prompt of 512, 128 tokens decoded"},
      {"headrace bench -m model.gguf -p 512 -n 128 -npl 1,8 -d 0,4096 -t 2 -r 5",
       "decoding alone and by eight, at the start and behind 4096 tokens"},
      {"headrace bench -t 1-4 -n 0 -o csv", "prompts on 1, 2, 3 and 4 threads"},
      {"headrace bench --isa avx2,avx512 -o html > bench.html", "a page with plots"},
      {"headrace bench --load --concurrency 1,4,16 --input-len 250 --output-len 16..512",
       "1, 4 and 16 clients, answers of mixed lengths"},
      {"headrace bench --load --rate 2 --duration 60 --slo ttft:500ms,itl:50ms -o html > load.html",
       "two requests a second for a minute, and how many were served well"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->output.wants_json());
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
