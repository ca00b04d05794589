// headrace score: teacher-forced log-probabilities of given tokens.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/measure.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

struct ScoreArgs {
  ModelArgs model;
  std::string ids_file;
  int64_t top = 0;
  bool json = false;
};

nlohmann::json top_json(const Scores& scores) {
  auto rows = nlohmann::json::array();
  for (const auto& row : scores.top) {
    auto entries = nlohmann::json::array();
    for (const TokenLogprob& entry : row) entries.push_back({entry.id, entry.logprob});
    rows.push_back(std::move(entries));
  }
  return rows;
}

Result<int> run_checked(const ScoreArgs& args) {
  HEADRACE_ASSIGN(const std::string file, read_text(args.ids_file));
  HEADRACE_ASSIGN(const auto ids, parse_ids(file, args.ids_file));
  HEADRACE_ASSIGN(const auto model, open_model_of(args.model, true, args.json));
  HEADRACE_TRY(check_ids(ids, model->model->info().vocab_size, args.ids_file));
  if (static_cast<int64_t>(ids.size()) > model->context) {
    return Error{ErrorCode::context_length_exceeded,
                 fmt::format("there are {} ids, the context is {}", ids.size(), model->context),
                 args.ids_file, context_hint(*model, "score fewer ids")};
  }
  const auto session = model->session(static_cast<int64_t>(ids.size()));
  HEADRACE_ASSIGN(const Scores scores, score_tokens(*session, ids, args.top));
  double mean = 0;
  for (const double nll : scores.nll) mean += nll / static_cast<double>(scores.nll.size());
  if (args.json) {
    print_json({{"nll", scores.nll},
                {"top", top_json(scores)},
                {"mean_nll", scores.nll.empty() ? nlohmann::json() : nlohmann::json(mean)},
                {"warnings", model->warnings}});
    return kDone;
  }
  for (size_t i = 0; i < scores.nll.size(); ++i) {
    print(fmt::format("{:5}  {:9.4f}  {:>7}  {}\n", i + 1, scores.nll[i], ids[i + 1],
                      printable(model->tokenizer->piece(ids[i + 1]))));
    if (scores.top.empty()) continue;
    for (const TokenLogprob& entry : scores.top[i]) {
      print(fmt::format("         {:9.4f}  {:>7}  {}\n", -entry.logprob, entry.id,
                        printable(model->tokenizer->piece(entry.id))));
    }
  }
  if (!scores.nll.empty()) print(fmt::format(" mean  {:9.4f}\n", mean));
  return kDone;
}

}  // namespace

Command score_command() {
  auto args = std::make_shared<ScoreArgs>();
  Command command;
  command.name = "score";
  command.summary = "Show how likely given tokens are";
  command.description =
      "Feeds token ids as they are (nothing is added) and prints, for each but the first, its "
      "negative log-probability (natural log) given those before it. With --top K also the K most "
      "likely tokens at each position; the JSON form has them for the last position too.";
  auto& options = command.options;
  options.push_back(path_option("--ids-file", "FILE", "JSON array of ids; - reads standard input",
                                &args->ids_file));
  options.back().required = true;
  options.push_back(
      make_option("--top", "K", "Show the K most likely tokens, at most 1000", &args->top, "0"));
  options.back().min_value = 0;
  options.back().max_value = 1000;
  add_model_options(options, args->model);
  options.push_back(json_option(&args->json));
  command.examples = {
      {"printf 'The capital of France is Paris' | headrace tokenize --json | headrace score "
       "--ids-file - --top 3",
       "what the default model expected"},
      {"headrace score -m gemma3-270m --ids-file ids.json --json", "as JSON"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
