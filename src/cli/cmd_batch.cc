// headrace batch: answers OpenAI's batch files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/batch_files.h"
#include "api/batch_run.h"
#include "api/run_request.h"
#include "app/memory_plan.h"
#include "app/sampling_defaults.h"
#include "base/clock.h"
#include "base/os/signals.h"
#include "base/os/system_limits.h"
#include "cli/batch_report.h"
#include "cli/commands.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/parse_bytes.h"
#include "cli/report.h"
#include "cli/sampling_options.h"
#include "cli/served_model.h"

namespace headrace::cli {
namespace {

namespace fs = std::filesystem;

struct BatchArgs {
  ModelArgs model;
  SamplingArgs sampling;
  std::string input;
  std::string output;
  int64_t max_sequences = 16;
  std::string kv_memory;
  std::string output_order = "done";
  bool no_prefix_cache = false;
  bool overwrite = false;
  bool resume = false;
  bool fail_on_error = false;
  bool quiet = false;
  bool json = false;
};

Result<void> check_args(const BatchArgs& args) {
  const auto wrong = [](std::string message, std::string where, std::string hint = "") {
    return Error{ErrorCode::invalid_argument, std::move(message), std::move(where),
                 std::move(hint)};
  };
  if (args.overwrite && args.resume) return wrong("contradicts --resume", "--overwrite");
  if (args.json && args.output == "-") {
    return wrong("both the answers and --json would go to standard output", "OUT",
                 "name a file for the answers");
  }
  std::error_code ignored;
  if (fs::equivalent(args.input, args.output, ignored)) {
    return wrong("is the input too", "OUT", "name another file for the answers");
  }
  if (!args.kv_memory.empty()) {
    if (auto bytes = parse_bytes(args.kv_memory); !bytes.ok()) {
      return std::move(bytes).error().at("--kv-memory");
    }
  }
  return check_sampling(args.sampling);
}

/// Some wait in the engine while others run, so that no place is ever free.
int num_workers(int64_t max_sequences) {
  return static_cast<int>(max_sequences + std::clamp<int64_t>(max_sequences, 2, 64));
}

EngineOptions engine_options(const BatchArgs& args, const api::RequestLimits& limits) {
  EngineOptions options;
  options.max_sequences = args.max_sequences;
  options.prefix_cache = !args.no_prefix_cache;
  if (!args.kv_memory.empty()) options.kv_bytes = *parse_bytes(args.kv_memory);
  // As many as the lines in work may have: they are bounded already.
  options.max_waiting = std::min<int64_t>(
      int64_t{num_workers(args.max_sequences)} * static_cast<int64_t>(limits.max_prompts), 1 << 20);
  options.max_waiting_tokens = std::numeric_limits<int64_t>::max();
  return options;
}

/// An error that ends a run says how much there is, and how to go on.
Error ended_early(const BatchArgs& args, const api::BatchOutcome& outcome) {
  Error error = outcome.error ? *outcome.error : Error{ErrorCode::cancelled, "interrupted", "", ""};
  const int64_t num_written = outcome.counts.num_answered + outcome.counts.num_skipped;
  error.message += fmt::format("; {} answers are written", num_written);
  if (!api::can_go_on_with(args.output)) return error;
  error.hint += error.hint.empty() ? "" : ", then ";
  error.hint += "run the same command again to go on";
  return error;
}

/// What OUT has already. Errors: it has something else, which must not be lost.
Result<api::AnsweredLines> answered_in_output(const BatchArgs& args,
                                              const api::ServedModel& model) {
  if (args.overwrite) return api::AnsweredLines();
  auto answered = api::read_answered(args.input, args.output, model);
  if (!answered.ok() && answered.error().code == ErrorCode::mismatch) {
    answered.error().hint = "name another file, or give --overwrite to lose what is in it";
  }
  return answered;
}

/// What a run says besides its answers: at once, or in its JSON.
class Warnings {
 public:
  Warnings(std::vector<std::string> first, bool json) : all_(std::move(first)), json_(json) {}
  void add(std::string text) {
    if (!json_) warn(text);
    all_.push_back(std::move(text));
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
  bool json_;
};

int report(const BatchArgs& args, const api::ServedModel& model, const BatchSummary& summary,
           const Warnings& warnings) {
  if (args.json) {
    print_json(summary_json(summary, model, warnings.all()));
  } else if (!args.quiet) {
    std::fputs(summary_text(summary).c_str(), stderr);
  }
  const int64_t num_failed = summary.counts.num_failed + summary.num_failed_before;
  if (!args.fail_on_error || num_failed == 0) return kDone;
  // The summary is all the JSON there is.
  return fail({ErrorCode::invalid_argument,
               fmt::format("{} of {} answers are errors, {} of them from earlier runs", num_failed,
                           summary.counts.num_answered + summary.counts.num_skipped,
                           summary.num_failed_before),
               args.output, "delete their lines to have them answered again"},
              false);
}

Result<std::unique_ptr<Engine>> start_engine(const BatchArgs& args, OpenedModel& opened,
                                             const api::RequestLimits& limits) {
  auto engine = opened.start_engine(engine_options(args, limits));
  if (!engine.ok() && engine.error().where == "kv_bytes") engine.error().where = "--kv-memory";
  return engine;
}

struct TimedOutcome {
  api::BatchOutcome outcome;
  double seconds = 0;
};

/// With a progress bar, which is gone when this returns.
TimedOutcome run(const BatchArgs& args, Engine& engine, const api::ServedModel& model,
                 api::BatchReader& reader, AppendFile& out) {
  BatchProgress progress(args.input, engine, args.quiet);
  const api::BatchRunHooks hooks{
      .answer =
          [&](const api::PreparedRequest& request, const std::function<bool()>& is_given_up) {
            return api::run_request(engine, model.tokenizer, request, is_given_up);
          },
      .progress = [&](const api::BatchCounts& counts) { progress.show(counts); },
      .is_interrupted = [] { return InterruptGuard::interrupted(); }};
  const api::BatchRunOptions options{.num_workers = num_workers(args.max_sequences),
                                     .in_input_order = args.output_order == "input"};
  auto outcome = api::run_batch(reader, out, model, options, hooks, SystemClock());
  return {std::move(outcome), progress.seconds()};
}

/// A default for the length of answers is made to fit each prompt; "" where it may fit one as it
/// is.
std::string default_length_warning(const api::ServedModel& model) {
  if (model.stop.max_tokens < model.max_context) return "";
  return fmt::format(
      "no answer has the {} tokens of -n: the context is {}, and answers to requests without "
      "max_tokens end where it is full",
      model.stop.max_tokens, model.max_context);
}

Result<int> answer_all(const BatchArgs& args, OpenedModel& opened, api::ServedModel model,
                       InputStream in, Warnings& warnings) {
  HEADRACE_ASSIGN(auto answered, answered_in_output(args, model));
  if (!answered.other_fingerprint().empty()) {
    warnings.add("earlier answers were computed by " + answered.other_fingerprint() +
                 ", those to come by " + model.fingerprint + ": they may differ a little");
  }
  const InterruptGuard guard({.catch_terminate = true, .second_ends = true});
  HEADRACE_ASSIGN(const auto engine, start_engine(args, opened, model.limits));
  model.max_context = engine->max_context();
  if (auto text = default_length_warning(model); !text.empty()) warnings.add(std::move(text));
  // Only now: it takes away what --overwrite gives up, which a run that cannot start must not.
  HEADRACE_ASSIGN(AppendFile out, api::open_batch_output(args.output, answered));
  api::BatchReader reader(std::move(in), model.limits, answered);
  const auto [outcome, seconds] = run(args, *engine, model, reader, out);
  if (outcome.error || outcome.was_interrupted) return ended_early(args, outcome);
  if (outcome.first_fault) {
    warnings.add("a request failed by a fault of this machine or program: " +
                 outcome.first_fault->to_string());
  }
  return report(args, model,
                {.input = args.input,
                 .output = args.output,
                 .counts = outcome.counts,
                 .num_failed_before = answered.num_failed(),
                 .seconds = seconds},
                warnings);
}

Result<int> run_checked(const BatchArgs& args) {
  if (const auto right = check_args(args); !right.ok()) {
    return fail_usage("batch", right.error(), args.json);
  }
  HEADRACE_ASSIGN(InputStream in, api::open_batch_input(args.input));
  HEADRACE_ASSIGN(const auto lock, api::lock_batch_output(args.output));
  HEADRACE_ASSIGN(auto opened, open_model_of(args.model, true, args.json));
  Warnings warnings(opened->warnings, args.json);
  std::vector<std::string> ignored_keys;
  const SamplingParams defaults = sampling_defaults(opened->checkpoint->metadata(), ignored_keys);
  for (std::string& text : ignored_keys) warnings.add(std::move(text));
  auto sampling = sampling_of(args.sampling, defaults, opened->model->info().vocab_size);
  if (!sampling.ok()) return fail_usage("batch", sampling.error(), args.json);
  for (auto& text : sampling_warnings(args.sampling, *sampling)) warnings.add(std::move(text));
  auto model = served_model(*opened, std::move(sampling).value(), stop_of(args.sampling));
  HEADRACE_ASSIGN(model.dry_breakers, dry_breakers_of(args.sampling));
  model.may_stream = false;
  model.answers_any_name = true;
  return answer_all(args, *opened, std::move(model), std::move(in), warnings);
}

void add_batch_options(std::vector<Option>& options, BatchArgs& args) {
  constexpr const char* kGroup = "Batch";
  const auto add = [&](Option option) {
    option.group = kGroup;
    options.push_back(std::move(option));
  };
  Option sequences = make_option("-np,--max-sequences,--parallel,--max-num-seqs", "N",
                                 "Requests computed at once", &args.max_sequences, "16");
  sequences.min_value = 1;
  sequences.max_value = 1024;
  add(std::move(sequences));
  add(make_option("--kv-memory", "SIZE", "Memory of the KV cache: 512M, 2G, 1.5GB", &args.kv_memory,
                  "for -np whole contexts, at most half of the free memory"));
  add(make_option("--no-prefix-cache", "", "Compute each prompt as a whole, shared beginnings too",
                  &args.no_prefix_cache));
  Option order = make_option("--output-order", "ORDER",
                             "Write each answer once it is done, or in the order of the input",
                             &args.output_order, "done");
  order.choices = {"done", "input"};
  add(std::move(order));
  add(make_option("--resume", "", "Go on behind the answers that OUT has; this is the default",
                  &args.resume));
  add(make_option("--overwrite", "", "Begin anew; what is in OUT is lost", &args.overwrite));
  add(make_option("--fail-on-error", "", "Exit code 1 if any answer in OUT is an error",
                  &args.fail_on_error));
}

}  // namespace

Command batch_command() {
  auto args = std::make_shared<BatchArgs>();
  Command command;
  command.name = "batch";
  command.summary = "Answer a file of requests, in OpenAI's batch format";
  command.description =
      "Each line of IN is one request: {\"custom_id\": \"a\", \"method\": \"POST\", \"url\": "
      "\"/v1/chat/completions\", \"body\": {...}}; /v1/completions too. Each line of OUT is the "
      "answer to one: {\"id\", \"custom_id\", \"response\": {\"status_code\", \"request_id\", "
      "\"body\"}, \"error\"}. Either file may be -, standard input and output.\n"
      "Answers come in the order in which they are done; custom_id tells which is which. A line "
      "with a fault (no JSON, an unknown URL, a parameter out of range, a custom_id for the second "
      "time) gets an answer with the error, and ends nothing.\n"
      "A run that ended early, by Ctrl-C or a power cut, goes on where it was when the same "
      "command "
      "is run again: no answer is lost or given twice. OUT is refused where it holds answers of "
      "another model or to another input. To have some requests answered again, delete their lines "
      "from OUT.\n"
      "The sampling options hold for requests that do not say otherwise.";
  auto& options = command.options;
  options.push_back(path_option("in", "", "The requests, one a line", &args->input));
  options.back().required = true;
  options.push_back(path_option("out", "", "Where the answers go", &args->output));
  options.back().required = true;
  add_batch_options(options, *args);
  add_model_options(options, args->model);
  options.push_back(chat_template_option(args->model));
  add_sampling_options(options, args->sampling);
  Option quiet = make_option("--quiet", "", "No progress bar and no summary", &args->quiet);
  quiet.group = "Output";
  options.push_back(std::move(quiet));
  options.push_back(json_option(&args->json));
  options.back().help = "Print a summary as one JSON value on standard output";
  command.examples = {
      {"headrace batch requests.jsonl answers.jsonl -n 256",
       "the default model, 16 at once; the same again, after it was ended, goes on"},
      {"headrace batch in.jsonl out.jsonl -m model.gguf -np 64 --kv-memory 8G --temp 0",
       "more at once"},
      {"zcat in.jsonl.gz | headrace batch - - --quiet | gzip > out.jsonl.gz", "in a pipeline"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
