// headrace bench: how fast a model runs here, beside what the machine allows.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "app/bench.h"
#include "base/cpu_features.h"
#include "base/os/signals.h"
#include "base/os/system_limits.h"
#include "base/os/terminal.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

struct BenchArgs {
  std::vector<std::string> models;
  std::vector<int64_t> prompts, gens, parallels, depths, threads, chunks;
  bool pin = false;
  bool full_head = false;
  bool no_pack = false;
  int64_t repetitions = 5;
  std::string kv_types;
  std::string isas;
  std::string formats = "md";
  std::string output;
  bool json = false;
};

/// One way to open a model.
struct Setting {
  std::string path;
  OpenOptions options;
};

/// Each of the values once, in order; `otherwise` where there are none.
template <class T>
std::vector<T> given_or(const std::vector<T>& given, const T& otherwise) {
  std::vector<T> out;
  for (const T& value : given) {
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  }
  if (out.empty()) out.push_back(otherwise);
  return out;
}

/// The parts of a list, each once; "" alone where nothing was given.
std::vector<std::string> parts_once(const std::string& list) {
  return given_or<std::string>(split_list(list), "");
}

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

/// Every combination of what was asked for.
Result<std::vector<Setting>> settings_of(const BenchArgs& args,
                                         const std::vector<BenchTest>& tests) {
  std::vector<Setting> settings;
  for (const std::string& model : given_or<std::string>(args.models, "")) {
    ModelArgs model_args;
    model_args.model = model;
    HEADRACE_ASSIGN(const std::string path, find_model(model_args, true));
    for (const std::string& isa : parts_once(args.isas)) {
      for (const std::string& kv_type : parts_once(args.kv_types)) {
        for (const int64_t threads : given_or<int64_t>(args.threads, 0)) {
          for (const int64_t chunk : given_or<int64_t>(args.chunks, OpenOptions{}.chunk_tokens)) {
            Setting setting;
            setting.path = path;
            setting.options.isa = isa;
            setting.options.kv_type = kv_type;
            setting.options.num_threads = static_cast<int>(threads);
            setting.options.pin = args.pin;
            setting.options.full_head = args.full_head;
            setting.options.pack = !args.no_pack;
            setting.options.chunk_tokens = chunk;
            setting.options.context = longest(tests);
            setting.options.check_needs = [tests](const ModelConfig& config,
                                                  const MemoryNeeds& needs, uint64_t available) {
              return check_bench_fits(tests, config, needs, available);
            };
            settings.push_back(std::move(setting));
          }
        }
      }
    }
  }
  return settings;
}

/// One line on standard error, on a terminal only.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }

  void show(const std::string& text) {
    if (!enabled_) return;
    const int columns = terminal_columns(StandardStream::error, 80);
    std::fprintf(stderr, "\r\x1b[K%s", printable(text, static_cast<size_t>(columns) - 1).c_str());
    std::fflush(stderr);
    drawn_ = true;
  }

 private:
  bool enabled_ = is_terminal(StandardStream::error);
  bool drawn_ = false;
};

std::shared_ptr<BenchSetting> describe(const OpenedModel& model) {
  const ModelInfo& info = model.model->info();
  auto setting = std::make_shared<BenchSetting>();
  setting->model = info.name;
  setting->file = model.path;
  setting->weight_bytes = info.weight_bytes;
  setting->is_packed = model.options.pack;
  setting->num_parameters = info.num_parameters;
  setting->cpu = cpu_features().model_name;
  setting->isa = isa_name(model.isa);
  setting->kernels = model.backend->description();
  setting->num_threads = model.backend->num_threads();
  setting->num_processors = usable_processors();
  setting->kv_type = kv_type_name(model.kv_type);
  setting->chunk_tokens = model.options.chunk_tokens;
  return setting;
}

Result<std::vector<BenchEntry>> measure_all(const std::vector<Setting>& settings,
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

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (out) return {};
  return Error{ErrorCode::io_error, "cannot write the file", path, ""};
}

Result<void> show(const BenchArgs& args, const std::vector<std::string>& formats,
                  const std::vector<BenchEntry>& entries) {
  for (const std::string& format : formats) {
    const std::string text = rendered(format, entries);
    if (args.output.empty()) {
      print(text);
      continue;
    }
    const std::string path = args.output + "." + format;
    HEADRACE_TRY(write_file(path, text));
    std::fprintf(stderr, "%s\n", printable(path).c_str());
  }
  return {};
}

/// Then a failure is JSON on standard output too.
bool wants_json(const BenchArgs& args) {
  return args.json || (args.formats == "json" && args.output.empty());
}

Result<int> run_checked(const BenchArgs& args) {
  const auto formats = args.json ? std::vector<std::string>{"json"} : parts_once(args.formats);
  const bool wants_page = std::find(formats.begin(), formats.end(), "html") != formats.end();
  if (wants_page && !has_bench_page()) {
    return Error{ErrorCode::unsupported, "this build of Headrace has no Chart.js for the page",
                 "-o html", "install Debian's libjs-chart.js and build again"};
  }
  const auto tests = tests_of(args);
  if (tests.empty()) {
    return fail_usage("bench",
                      Error{ErrorCode::invalid_argument, "there is nothing to measure", "",
                            "-p or -n must not be 0"},
                      wants_json(args));
  }
  HEADRACE_ASSIGN(const auto settings, settings_of(args, tests));
  HEADRACE_ASSIGN(const auto entries, measure_all(settings, tests, args.repetitions));
  warn_of(entries);
  HEADRACE_TRY(show(args, formats, entries));
  return kDone;
}

Option numbers(std::string names, std::string help, std::vector<int64_t>* target,
               std::string default_text, double least, double most) {
  Option option =
      make_option(std::move(names), "N[,N...]", std::move(help), target, std::move(default_text));
  option.min_value = least;
  option.max_value = most;
  return option;
}

std::vector<Option> test_options(BenchArgs& args) {
  constexpr double kMostTokens = 1 << 24;
  std::vector<Option> options;
  options.push_back(numbers("-p,--n-prompt,-npp", "Prompt lengths; 0: no prompt is measured",
                            &args.prompts, "512", 0, kMostTokens));
  options.push_back(numbers("-n,--n-gen,-ntg", "Tokens to decode; 0: decoding is not measured",
                            &args.gens, "128", 0, kMostTokens));
  options.push_back(numbers("-npl,-np,--parallel", "Sequences that decode at the same time",
                            &args.parallels, "1", 1, 1024));
  options.push_back(numbers("-d,--n-depth,--depth",
                            "Tokens that each sequence holds before it decodes", &args.depths, "0",
                            0, kMostTokens));
  options.push_back(
      make_option("-r,--repetitions", "N", "Measurements of each test", &args.repetitions, "5"));
  options.back().min_value = 1;
  options.back().max_value = 1000;
  for (Option& option : options) option.group = "Tests";
  return options;
}

std::vector<Option> setting_options(BenchArgs& args) {
  std::vector<Option> options;
  ModelArgs unused;
  options.push_back(model_option(unused));
  options.back().target = &args.models;
  options.back().help += "; may be given several times";
  options.push_back(numbers("-t,--threads", "Threads", &args.threads,
                            "the processors this process may use", 1, 1024));
  options.push_back(pin_option(&args.pin));
  options.push_back(full_head_option(&args.full_head));
  options.push_back(no_pack_option(&args.no_pack));
  options.push_back(kv_type_option(&args.kv_types, true));
  options.push_back(isa_option(&args.isas, true));
  options.push_back(numbers("-ub,--ubatch-size", "Prompt tokens computed in one step", &args.chunks,
                            std::to_string(OpenOptions{}.chunk_tokens), 1, 8192));
  for (Option& option : options) option.group = "Model";
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
      "~ marks figures that moved, or that other programs disturbed.";
  auto& options = command.options;
  for (Option& option : test_options(*args)) options.push_back(std::move(option));
  for (Option& option : setting_options(*args)) options.push_back(std::move(option));
  options.push_back(make_option("-o,--output", "FORMAT[,FORMAT...]",
                                "How results are written; html is one page with plots",
                                &args->formats, "md"));
  options.back().choices = {"md", "json", "csv", "html"};
  options.back().is_list = true;
  options.push_back(path_option("--output-file", "NAME",
                                "Write NAME.md, NAME.json and so on instead of standard output",
                                &args->output));
  options.push_back(json_option(&args->json));
  for (size_t i = options.size() - 3; i < options.size(); ++i) options[i].group = "Output";
  command.examples = {
      {"headrace bench", "the default model: a prompt of 512, 128 tokens decoded"},
      {"headrace bench -m model.gguf -p 512 -n 128 -npl 1,8 -d 0,4096 -t 2 -r 5",
       "decoding alone and by eight, at the start and behind 4096 tokens"},
      {"headrace bench -t 1-4 -n 0 -o csv", "prompts on 1, 2, 3 and 4 threads"},
      {"headrace bench --isa avx2,avx512 -o html > bench.html", "a page with plots"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), wants_json(*args));
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
