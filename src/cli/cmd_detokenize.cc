// headrace detokenize: token ids to text.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/os/terminal.h"
#include "cli/commands.h"
#include "cli/generate.h"
#include "cli/input.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"

namespace headrace::cli {
namespace {

struct DetokenizeArgs {
  ModelArgs model;
  std::string ids_file;
  bool skip_special = false;
  bool json = false;
};

Result<int> run_checked(const DetokenizeArgs& args) {
  HEADRACE_ASSIGN(const std::string file, read_text(args.ids_file));
  HEADRACE_ASSIGN(const auto ids, parse_ids(file, args.ids_file));
  HEADRACE_ASSIGN(const auto tokenizer, open_tokenizer_of(args.model));
  HEADRACE_TRY(check_ids(ids, tokenizer->vocab_size(), args.ids_file));
  const std::string text = tokenizer->decode(ids, args.skip_special);
  if (args.json) {
    print_json({{"text", text}});
  } else {
    print(shown_text(text, is_terminal(StandardStream::output)));
  }
  return kDone;
}

}  // namespace

Command detokenize_command() {
  auto args = std::make_shared<DetokenizeArgs>();
  Command command;
  command.name = "detokenize";
  command.summary = "Turn token ids into text";
  command.description =
      "Prints the text that token ids stand for, byte for byte and without a line end of its own. "
      "The file holds a JSON array, the output of tokenize --json, or plain numbers.";
  auto& options = command.options;
  options.push_back(tokenizer_model_option(args->model));
  options.push_back(
      path_option("--ids-file", "FILE", "The ids; - reads standard input", &args->ids_file));
  options.back().required = true;
  options.push_back(
      make_option("--skip-special", "", "Leave control tokens out", &args->skip_special));
  options.push_back(json_option(&args->json));
  command.examples = {
      {"echo '[504, 3575]' | headrace detokenize --ids-file -", "with the default model"},
      {"headrace tokenize --json < a.txt | headrace detokenize --ids-file -", "there and back"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
