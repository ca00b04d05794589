// headrace tokenizer-check: whether two models tokenise alike.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/tokenizer_check.h"
#include "cli/commands.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

struct TokenizerCheckArgs {
  std::string model, other;
  bool json = false;
};

Result<std::shared_ptr<const Tokenizer>> open_named(const std::string& name) {
  ModelArgs args;
  args.model = name;
  return open_tokenizer_of(args);
}

nlohmann::json to_json(const TokenizerComparison& found) {
  nlohmann::json out{{"same", found.same()},
                     {"same_rules", found.same_rules},
                     {"rules", found.rules},
                     {"num_texts", found.num_texts},
                     {"difference", nullptr}};
  if (found.difference) {
    const TokenizerDifference& d = *found.difference;
    out["difference"] = {
        {"text", d.text}, {"a", d.a}, {"b", d.b}, {"error_a", d.error_a}, {"error_b", d.error_b}};
  }
  return out;
}

/// Some tokens from `first` on, with what they stand for.
std::string shown_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                         size_t first) {
  constexpr size_t kShown = 6;
  std::string out;
  for (size_t i = first; i < ids.size() && i < first + kShown; ++i) {
    out += fmt::format("{}{} '{}'", i > first ? ", " : "", ids[i],
                       printable(std::string(tokenizer.piece(ids[i]))));
  }
  if (ids.size() > first + kShown) out += ", ...";
  return out.empty() ? "no token" : out;
}

void print_difference(const TokenizerCheckArgs& args, const TokenizerDifference& found,
                      const Tokenizer& a, const Tokenizer& b) {
  const auto [in_a, in_b] =
      std::mismatch(found.a.begin(), found.a.end(), found.b.begin(), found.b.end());
  const auto first = static_cast<size_t>(in_a - found.a.begin());
  print(fmt::format("the tokens of '{}' differ{}:\n", printable(found.text),
                    first > 0 ? fmt::format(" from token {} on", first + 1) : ""));
  const auto print_side = [&](const std::string& name, const Tokenizer& tokenizer,
                              const std::vector<TokenId>& ids, const std::string& error) {
    print(fmt::format("  {}: {}\n", name,
                      error.empty() ? shown_tokens(tokenizer, ids, first) : printable(error)));
  };
  print_side(args.model, a, found.a, found.error_a);
  print_side(args.other, b, found.b, found.error_b);
}

Result<int> run_checked(const TokenizerCheckArgs& args) {
  HEADRACE_ASSIGN(const auto a, open_named(args.model));
  HEADRACE_ASSIGN(const auto b, open_named(args.other));
  const TokenizerComparison found = compare_tokenizers(*a, args.model, *b, args.other);
  const int code = found.same() ? kDone : kFailed;
  if (args.json) {
    print_json(to_json(found));
    return code;
  }
  if (found.same()) {
    print(fmt::format("the same tokenizer: {}, {} tokens\n", a->description(), a->vocab_size()));
    return code;
  }
  if (!found.same_rules) print(fmt::format("{}\n", printable(found.rules)));
  if (!found.difference) {
    print(fmt::format("{} texts have the same tokens in both\n", found.num_texts));
    return code;
  }
  print_difference(args, *found.difference, *a, *b);
  return code;
}

Option model_name(const std::string& name, const std::string& help, std::string* target) {
  Option option = make_option(name, "", help, target);
  option.required = true;
  option.is_model = true;
  return option;
}

}  // namespace

Command tokenizer_check_command() {
  auto args = std::make_shared<TokenizerCheckArgs>();
  Command command;
  command.name = "tokenizer-check";
  command.summary = "Compare the tokenizers of two models";
  command.description =
      "Compares vocabularies and rules, then the tokens of texts in many scripts and of texts with "
      "special tokens, and shows the first difference of each. A model is a GGUF file, a directory "
      "of Hugging Face, its tokenizer.json, or a name in the store. The exit code is 0 where both "
      "are the same and 1 where they differ.";
  command.options = {model_name("model", "One model", &args->model),
                     model_name("other", "The model to compare it with", &args->other),
                     json_option(&args->json)};
  command.examples = {
      {"headrace tokenizer-check smollm2-135m ./SmolLM2-135M", "a model and its draft model"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
