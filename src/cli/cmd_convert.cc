// headrace convert and headrace quantize: a model's file in another type.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/convert.h"
#include "app/convert_to_hf.h"
#include "app/open_model.h"
#include "base/os/signals.h"
#include "cli/commands.h"
#include "cli/make_option.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "model/hf/hf_checkpoint.h"

namespace headrace::cli {
namespace {

struct ConvertArgs {
  std::string source;
  std::string out;
  std::string type;
  bool force = false;
  std::optional<int64_t> threads;
  bool json = false;
};

nlohmann::json summary_json(const ConvertArgs& args, const ConvertSummary& summary,
                            double seconds) {
  return {{"file", args.out},
          {"type", args.type.empty() ? nlohmann::json() : nlohmann::json(args.type)},
          {"tensors", summary.num_tensors},
          {"tensors_changed", summary.num_changed},
          {"parameters", summary.num_parameters},
          {"source_bytes", summary.source_bytes},
          {"file_bytes", summary.file_bytes},
          {"bits_per_weight", summary.num_parameters > 0
                                  ? 8.0 * static_cast<double>(summary.file_bytes) /
                                        static_cast<double>(summary.num_parameters)
                                  : 0.0},
          {"seconds", seconds},
          {"warnings", summary.warnings}};
}

void print_summary(const ConvertArgs& args, const ConvertSummary& summary, double seconds) {
  print(fmt::format("{}: {}, from {}; {} of {} tensors changed, in {:.1f} s\n", printable(args.out),
                    size_text(summary.file_bytes), size_text(summary.source_bytes),
                    summary.num_changed, summary.num_tensors, seconds));
}

Result<int> run_checked(const ConvertArgs& args) {
  ConvertOptions options;
  options.to = find_quantization(args.type);
  options.overwrite = args.force;
  options.num_threads = static_cast<int>(args.threads.value_or(0));
  HEADRACE_ASSIGN(const std::string path, resolve_model(args.source));
  HEADRACE_ASSIGN(const auto checkpoint, open_model_files(path));
  const InterruptGuard guard({.catch_terminate = true});
  const auto begin = std::chrono::steady_clock::now();
  ConvertSummary summary;
  {
    ProgressBar bar;
    options.progress = [&](uint64_t done, uint64_t total) {
      bar.update(total == 0 ? "look" : "write", done, total);
      return !InterruptGuard::interrupted();
    };
    const auto convert = is_hf_target(args.out) ? convert_to_hf : convert_model;
    HEADRACE_ASSIGN(summary, convert(*checkpoint, args.out, options));
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  for (const std::string& text : summary.warnings) warn(text);
  if (args.json) {
    print_json(summary_json(args, summary, taken.count()));
  } else {
    print_summary(args, summary, taken.count());
  }
  return kDone;
}

/// What both commands share; `type_required` is how they differ.
Command described(std::string name, bool type_required) {
  auto args = std::make_shared<ConvertArgs>();
  Command command;
  command.name = std::move(name);
  auto& options = command.options;
  options.push_back(make_option("source", "",
                                "A GGUF file, a Hugging Face directory, or a name in the store",
                                &args->source));
  options.back().required = true;
  options.back().is_model = true;
  options.push_back(
      path_option("out", "", "The GGUF file to write, or a directory: any other name", &args->out));
  options.back().required = true;
  options.push_back(make_option("type", "", "What 16- and 32-bit matrices become", &args->type));
  options.back().choices = quantization_names();
  options.back().required = type_required;
  options.push_back(make_option("-f,--force", "", "Replace what is there", &args->force));
  options.push_back(make_option("-t,--threads", "N", "Threads", &args->threads,
                                "the processors this process may use"));
  options.back().min_value = 1;
  options.back().max_value = 1024;
  options.push_back(json_option(&args->json));
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = std::move(args);
  return command;
}

constexpr const char* kRules =
    "Norms, biases and routers of experts stay as they are, and so does what is quantised already. "
    "Embedding and output head become Q6_K where the type has fewer bits. Rows that the blocks of "
    "a "
    "type do not divide become a type with smaller blocks, or one of 16 bits; docs/quantisation.md "
    "has the table.\n"
    "OUT appears once it is whole. Where there is a file of that name, it is replaced with --force "
    "alone.";

}  // namespace

Command convert_command() {
  Command command = described("convert", false);
  command.summary = "Write a model as a GGUF file or a directory of Hugging Face";
  command.description = std::string(
                            "Writes a model's metadata and tensors to one new GGUF file, "
                            "without a type as they are: so the parts of a split model "
                            "become one file, and a Hugging Face directory a GGUF file.\n"
                            "An OUT that does not end with .gguf is the other way: a directory "
                            "with config.json, safetensors and tokenizer.json, of weights in f32, "
                            "f16 or bf16 (those in blocks in f16).\n") +
                        kRules;
  command.examples = {
      {"headrace convert model-f16.gguf model-q4.gguf q4_k_m", ""},
      {"headrace convert model-00001-of-00003.gguf model.gguf",
       "one file of the parts of a split model"},
      {"headrace convert model-q8_0.gguf model-hf bf16", "a Hugging Face directory"}};
  return command;
}

Command quantize_command() {
  Command command = described("quantize", true);
  command.summary = "Quantise a GGUF file: convert, with a type";
  command.description = std::string("The same as `headrace convert` with a type. ") + kRules;
  command.examples = {{"headrace quantize model-bf16.gguf model-q4.gguf q4_k", ""}};
  return command;
}

}  // namespace headrace::cli
