// headrace perplexity: how well a model predicts a text, and how far one path drifts from another.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/kl_base.h"
#include "app/measure.h"
#include "base/os/signals.h"
#include "base/os/terminal.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"

namespace headrace::cli {
namespace {

struct PerplexityArgs {
  ModelArgs model;
  std::string text_file;
  int64_t chunk_tokens = 512;
  int64_t chunks = 0;
  std::string kl_base;
  std::string save_base;
  bool json = false;
};

void print_result(const Perplexity& result) {
  print(fmt::format("chunks      {} ({} tokens scored)\n", result.chunks, result.scored_tokens));
  print(fmt::format("mean NLL    {:.6f} +- {:.6f}\n", result.mean_nll, result.nll_standard_error));
  print(fmt::format("perplexity  {:.4f}\n", std::exp(result.mean_nll)));
  if (!result.mean_kl) return;
  print(fmt::format("mean KL     {:.6f}\n", *result.mean_kl));
  print(fmt::format("same top-1  {:.3f} %\n", 100 * *result.top1_agreement));
}

nlohmann::json result_json(const Perplexity& result, const std::vector<std::string>& warnings) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  };
  return {{"chunks", result.chunks},
          {"mean_nll", result.mean_nll},
          {"per_chunk_nll", result.per_chunk_nll},
          {"mean_kl", optional(result.mean_kl)},
          {"top1_agreement", optional(result.top1_agreement)},
          {"perplexity", std::exp(result.mean_nll)},
          {"nll_standard_error", result.nll_standard_error},
          {"scored_tokens", result.scored_tokens},
          {"warnings", warnings}};
}

Result<int> run_checked(const PerplexityArgs& args) {
  if (args.chunk_tokens % 2 != 0) {
    return fail_usage(
        "perplexity",
        Error{ErrorCode::invalid_argument,
              fmt::format("expected an even number, got {}", args.chunk_tokens), "--chunk", ""},
        args.json);
  }
  HEADRACE_ASSIGN(const std::string text, read_text(args.text_file));
  if (text.empty()) {
    return Error{ErrorCode::invalid_argument, "the text is empty", args.text_file,
                 "give a longer text"};
  }
  // Before the model is opened, so that a wrong file is known at once.
  if (!args.kl_base.empty()) HEADRACE_TRY(KlBaseReader::check(args.kl_base));
  if (!args.save_base.empty()) HEADRACE_TRY(KlBaseWriter::check_target(args.save_base));
  HEADRACE_ASSIGN(const auto model, open_model_of(args.model, true, args.json));
  if (args.chunk_tokens > model->context) {
    return Error{
        ErrorCode::context_length_exceeded,
        fmt::format("a chunk has {} tokens, the context {}", args.chunk_tokens, model->context),
        "--chunk", context_hint(*model, "give smaller chunks")};
  }
  PerplexityOptions options;
  options.chunk_tokens = args.chunk_tokens;
  options.max_chunks = args.chunks;
  options.kl_base = args.kl_base;
  options.save_base = args.save_base;
  const InterruptGuard guard({.catch_terminate = true});
  const bool shows_progress = is_terminal(StandardStream::error);
  options.progress = [&](int64_t done, int64_t total, double mean_nll) {
    if (shows_progress) {
      std::fputs(fmt::format("\rchunk {} of {}, mean NLL {:.4f}{}", done, total, mean_nll,
                             done == total ? "\n" : "")
                     .c_str(),
                 stderr);
    }
    return !InterruptGuard::interrupted();
  };
  const auto session = model->session(args.chunk_tokens);
  HEADRACE_ASSIGN(const Perplexity result,
                  measure_perplexity(*session, *model->tokenizer, model->model->info().vocab_size,
                                     text, options));
  if (args.json) {
    print_json(result_json(result, model->warnings));
  } else {
    print_result(result);
  }
  return kDone;
}

}  // namespace

Command perplexity_command() {
  auto args = std::make_shared<PerplexityArgs>();
  Command command;
  command.name = "perplexity";
  command.summary = "Measure how well a model predicts a text";
  command.description =
      "The text is tokenised without special tokens and cut into chunks (each begins with the BOS "
      "token where the model adds one). The second half of each chunk is scored: with chunks of "
      "512, positions 256 to 510 predict tokens 257 to 511.\n"
      "--save-base writes the whole distributions; --kl-base compares another instruction set, KV "
      "type or file of the same model with them: the mean Kullback-Leibler divergence from the "
      "base, and the share of positions with the same most likely token. A saved distribution "
      "takes two bytes a vocabulary entry and position.";
  auto& options = command.options;
  options.push_back(
      path_option("-f,--file", "TEXT", "The text; - reads standard input", &args->text_file));
  options.back().required = true;
  options.push_back(
      make_option("--chunk", "N", "Tokens in a chunk, even", &args->chunk_tokens, "512"));
  options.back().min_value = 4;
  options.push_back(make_option("--chunks", "N", "Measure at most N chunks", &args->chunks,
                                "all, or as many as the base has"));
  options.back().min_value = 1;
  options.push_back(
      path_option("--save-base", "FILE", "Write the distributions to this file", &args->save_base));
  options.push_back(path_option("--kl-base", "FILE", "Compare with the distributions in this file",
                                &args->kl_base));
  add_model_options(options, args->model);
  options.push_back(json_option(&args->json));
  command.examples = {
      {"headrace perplexity -f text.txt", "the default model"},
      {"headrace perplexity -f text.txt --chunks 8 --isa reference --save-base base.kl",
       "the exact path, saved"},
      {"headrace perplexity -f text.txt --kl-base base.kl", "how far the fast path is from it"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
