// headrace tokenize: text to token ids.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

struct TokenizeArgs {
  ModelArgs model;
  std::string file = "-";
  bool parse_special = false;
  bool no_bos = false;
  bool json = false;
};

Result<int> run_checked(const TokenizeArgs& args) {
  HEADRACE_ASSIGN(const std::string text, read_text(args.file));
  HEADRACE_ASSIGN(const auto tokenizer, open_tokenizer_of(args.model));
  EncodeOptions options;
  options.add_special = !args.no_bos;
  options.parse_special = args.parse_special;
  HEADRACE_ASSIGN(const auto ids, tokenizer->encode(text, options));
  if (args.json) {
    std::vector<std::string> pieces;
    pieces.reserve(ids.size());
    for (const TokenId id : ids) pieces.emplace_back(tokenizer->piece(id));
    print_json({{"ids", ids}, {"pieces", pieces}});
    return kDone;
  }
  for (const TokenId id : ids) {
    print(fmt::format("{:>7}  {}\n", id, printable(tokenizer->piece(id))));
  }
  return kDone;
}

}  // namespace

Command tokenize_command() {
  auto args = std::make_shared<TokenizeArgs>();
  Command command;
  command.name = "tokenize";
  command.summary = "Show the tokens of a text";
  command.description =
      "Reads text from standard input and prints one line a token: its id and its spelling in the "
      "vocabulary. The text is taken byte for byte, a final line end included. Files that hold "
      "only a vocabulary will do, and directories of Hugging Face with a tokenizer.json.";
  auto& options = command.options;
  options.push_back(tokenizer_model_option(args->model));
  options.push_back(
      path_option("-f,--file", "FILE", "Read the text from a file", &args->file, "standard input"));
  options.push_back(make_option("--parse-special", "",
                                "Take control tokens in the text for what they are",
                                &args->parse_special));
  options.push_back(make_option(
      "--no-bos", "", "Leave out the tokens that the model puts around a text", &args->no_bos));
  options.push_back(pre_tokenizer_option(args->model));
  options.push_back(json_option(&args->json));
  command.examples = {
      {"printf 'Hello, world' | headrace tokenize", "with the default model's vocabulary"},
      {"headrace tokenize -m gemma3-270m --no-bos --json < text.txt", "ids and pieces as JSON"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
