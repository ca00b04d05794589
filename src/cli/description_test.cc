// Help, manual page and completion say everything that a description says; for every command of the
// program, and for one with every kind of option.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/os/process.h"
#include "cli/completion.h"
#include "cli/frame.h"
#include "cli/help.h"
#include "cli/man_page.h"
#include "cli/parser.h"
#include "cli/sample_command.h"

namespace headrace::cli {
namespace {

std::vector<Command> commands_and_sample() {
  auto commands = all_commands();
  commands.push_back(make_sample().command);
  return commands;
}

/// Whether `name` stands in `text` with nothing after it that would make it a longer name.
bool has_name(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const char next = end < text.size() ? text[end] : ' ';
    if (next != '-' && !(next >= 'a' && next <= 'z')) return true;
  }
  return false;
}

bool has_program(const std::string& name) {
  ProcessOptions options;
  options.argv = {"sh", "-c", "command -v " + name};
  const auto result = run_process(options);
  return result.ok() && result->succeeded();
}

ProcessResult run(std::vector<std::string> argv, const std::string& input) {
  ProcessOptions options;
  options.argv = std::move(argv);
  options.input = input;
  options.timeout = std::chrono::seconds(60);
  auto result = run_process(options);
  EXPECT_TRUE(result.ok());
  return result.ok() ? std::move(result).value() : ProcessResult{};
}

TEST(Commands, AreDescribedWell) {
  std::set<std::string> names;
  for (const auto& command : all_commands()) {
    SCOPED_TRACE(command.name);
    EXPECT_TRUE(names.insert(command.name).second);
    EXPECT_FALSE(command.summary.empty());
    EXPECT_NE(command.summary.back(), '.');
    EXPECT_FALSE(command.examples.empty());
    EXPECT_TRUE(command.run);
    std::set<std::string> options = {"-h", "--help"};
    for (const auto& option : command.options) {
      SCOPED_TRACE(option.names);
      EXPECT_FALSE(option.help.empty());
      EXPECT_NE(option.help.back(), '.');
      EXPECT_TRUE(std::visit([](const auto* target) { return target != nullptr; }, option.target));
      EXPECT_EQ(option.value_name.empty(), is_flag(option) || is_positional(option));
      for (const auto& name : option_names(option))
        EXPECT_TRUE(options.insert(name).second) << name;
    }
    // The parser takes the description, whatever the arguments.
    const auto parsed = parse_args(command, {"--help"});
    EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
  }
}

TEST(Help, NamesEveryOptionAndDefault) {
  const auto commands = commands_and_sample();
  const std::string overview = overview_help(commands, 80, false);
  for (const auto& command : commands) {
    SCOPED_TRACE(command.name);
    EXPECT_NE(overview.find("\n  " + command.name + " "), std::string::npos);
    const std::string help = command_help(command, 80, false);
    for (const auto& option : command.options) {
      EXPECT_NE(help.find(option_title(option)), std::string::npos) << option.names;
    }
    for (const auto& example : command.examples) {
      EXPECT_NE(help.find(example.command), std::string::npos);
    }
    EXPECT_EQ(help.find('\x1b'), std::string::npos);
    EXPECT_NE(command_help(command, 80, true).find('\x1b'), std::string::npos);
  }
  const std::string sample = command_help(commands.back(), 80, false);
  EXPECT_NE(sample.find("Sampling:\n  -n, --max-tokens N"), std::string::npos);
  EXPECT_NE(sample.find("(default: no limit)"), std::string::npos);
  EXPECT_NE(sample.find("(one of: f16, f32; default: f16)"), std::string::npos);
}

TEST(ManPage, NamesEveryOptionAndPassesItsLint) {
  const auto commands = commands_and_sample();
  const std::string page = man_page(commands);
  std::string plain;
  for (size_t i = 0; i < page.size(); ++i) {
    if (page.compare(i, 2, "\\-") == 0) ++i;
    plain += page[i];
  }
  for (const auto& command : commands) {
    SCOPED_TRACE(command.name);
    EXPECT_NE(plain.find(".Ss headrace " + command.name), std::string::npos);
    for (const auto& option : command.options) {
      for (const auto& name : option_names(option))
        EXPECT_TRUE(has_name(plain, name) || is_positional(option)) << name;
    }
  }
  if (!has_program("mandoc")) GTEST_SKIP() << "no mandoc here to check the page";
  const auto lint = run({"mandoc", "-Tlint", "-Wwarning"}, page);
  EXPECT_TRUE(lint.succeeded()) << lint.out << lint.err;
}

TEST(Help, ShapedLinesKeepTheirShape) {
  for (const auto& command : commands_and_sample()) {
    SCOPED_TRACE(command.name);
    const std::string help = command_help(command, 80, false);
    std::istringstream lines(command.description);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(' ')) continue;
      EXPECT_NE(help.find("\n" + line + "\n"), std::string::npos) << line;
    }
  }
  const auto commands = all_commands();
  const auto chat = std::find_if(commands.begin(), commands.end(),
                                 [](const Command& command) { return command.name == "chat"; });
  ASSERT_NE(chat, commands.end());
  const std::string table = "/help            this list\n";
  std::istringstream lines(chat->description);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(' ')) continue;
    EXPECT_LE(line.size(), 80U) << line;
  }
  EXPECT_NE(command_help(*chat, 80, false).find("\n  " + table + "  /system [TEXT]   show"),
            std::string::npos);
  EXPECT_NE(
      man_page({*chat}).find(".Bd -literal -offset indent\n" + table + "/system [TEXT]   show"),
      std::string::npos);
}

TEST(ManPage, SaysWhereAForeignFlagHasAnEffect) {
  const std::string page = man_page(all_commands());
  const size_t none = page.find("Accepted without effect, with a warning:");
  const size_t some = page.find("Options of serve, batch and bench");
  ASSERT_NE(none, std::string::npos) << page.substr(page.find("SPELLINGS"));
  ASSERT_NE(some, std::string::npos) << page.substr(page.find("SPELLINGS"));
  EXPECT_EQ(page.substr(none, page.find(".Pp", none) - none).find("\\-\\-parallel"),
            std::string::npos);
  EXPECT_NE(page.find("\\-\\-parallel", some), std::string::npos);
}

TEST(Completion, ScriptsNameEveryOption) {
  const auto commands = commands_and_sample();
  const std::string bash = completion_script("bash", commands);
  const std::string zsh = completion_script("zsh", commands);
  const std::string fish = completion_script("fish", commands);
  for (const auto& command : commands) {
    for (const auto& option : command.options) {
      if (is_positional(option)) continue;
      for (const auto& name : option_names(option)) {
        SCOPED_TRACE(command.name + " " + name);
        EXPECT_TRUE(has_name(bash, name));
        EXPECT_TRUE(has_name(zsh, name));
        const std::string kind = name.size() == 2 ? " -s " : name[1] == '-' ? " -l " : " -o ";
        EXPECT_TRUE(has_name(fish, kind + name.substr(name.find_first_not_of('-'))));
      }
    }
  }
}

TEST(Completion, ScriptsAreGoodSyntax) {
  const auto commands = commands_and_sample();
  int num_checked = 0;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (!has_program(shell)) continue;
    const std::string file = ::testing::TempDir() + "headrace_completion." + shell;
    const auto result =
        run({"sh", "-c", "cat > \"$1\" && exec " + shell + " -n \"$1\"", "sh", file},
            completion_script(shell, commands));
    EXPECT_TRUE(result.succeeded()) << shell << ": " << result.err;
    ++num_checked;
  }
  EXPECT_GT(num_checked, 0);
}

/// What bash offers for a line; the last word is the one being typed.
std::vector<std::string> bash_offers(const std::vector<std::string>& words) {
  std::string script = completion_script("bash", commands_and_sample()) + "\nCOMP_WORDS=(headrace";
  for (const auto& word : words) script += " '" + word + "'";
  script += ")\nCOMP_CWORD=" + std::to_string(words.size()) +
            "\n_headrace\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  const auto result = run({"bash"}, script);
  EXPECT_TRUE(result.succeeded()) << result.err;
  EXPECT_EQ(result.err, "");
  std::vector<std::string> offers;
  std::string line;
  for (const char c : result.out) {
    if (c != '\n') {
      line += c;
    } else if (!line.empty()) {
      offers.push_back(std::exchange(line, ""));
    }
  }
  return offers;
}

TEST(Completion, BashOffersWhatFits) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(bash_offers({"sam"}), Words{"sample"});
  EXPECT_EQ(bash_offers({"sample", "--top"}), (Words{"--top-p", "--top-k"}));
  EXPECT_EQ(bash_offers({"sample", "--kv-type", ""}), (Words{"f16", "f32"}));
  const std::string file = ::testing::TempDir() + "headrace file with spaces";
  std::ofstream(file) << "x";
  EXPECT_EQ(bash_offers({"sample", "--system", file.substr(0, file.size() - 3)}), Words{file});
  EXPECT_EQ(bash_offers({"sample", "-m", file.substr(0, file.size() - 3)}), Words{file});
  EXPECT_TRUE(bash_offers({"sample", "--temp", ""}).empty());
  EXPECT_EQ(bash_offers({"completion", ""}), (Words{"bash", "zsh", "fish"}));
  EXPECT_EQ(bash_offers({"help", "sam"}), Words{"sample"});
  EXPECT_GT(bash_offers({""}).size(), all_commands().size());
}

TEST(Completion, FishOffersWhatFits) {
  if (!has_program("fish")) GTEST_SKIP() << "no fish here";
  const std::string script = ::testing::TempDir() + "headrace_offers.fish";
  std::ofstream(script) << completion_script("fish", commands_and_sample());
  const auto ask = [&](const std::string& line) {
    return run({"fish", "--no-config", "-c", "source '" + script + "'; complete -C '" + line + "'"},
               "")
        .out;
  };
  EXPECT_EQ(ask("headrace sam"), "sample\tDo something with a model\n");
  EXPECT_EQ(ask("headrace sample --top"), "--top-k\tThe best K\n--top-p\tThe nucleus\n");
  EXPECT_EQ(ask("headrace sample --kv-type "), "f16\tType of the cache\nf32\tType of the cache\n");
  EXPECT_EQ(ask("headrace completion "), "bash\nfish\nzsh\n");
}

TEST(Completion, ZshTakesTheScriptFromAFolderOrAsItIs) {
  if (!has_program("zsh")) GTEST_SKIP() << "no zsh here";
  const std::string load = "autoload -U compinit; compinit -u -D; source /dev/stdin; ";
  const auto result = run({"zsh", "-fc", load + "print -r -- $_comps[headrace]"},
                          completion_script("zsh", commands_and_sample()));
  EXPECT_EQ(result.out, "_headrace\n") << result.err;
}

TEST(Program, MakesOneExitCodeOfEverything) {
  auto failing = make_sample();
  failing.command.run = [] { return kFailed; };
  EXPECT_EQ(run_program({"sample"}, {failing.command}), kFailed);
  failing.command.run = []() -> int { throw std::bad_alloc(); };
  EXPECT_EQ(run_program({"sample"}, {failing.command}), kFailed);
  failing.command.run = []() -> int { throw std::runtime_error("x"); };
  EXPECT_EQ(run_program({"sample", "--json"}, {failing.command}), kFailed);
  EXPECT_EQ(run_program({"sample"}, {make_sample().command}), kDone);
  EXPECT_EQ(run_program({"sample", "--zzz"}, {make_sample().command}), kWrongUsage);
  EXPECT_EQ(run_program({}, {make_sample().command}), kWrongUsage);
}

}  // namespace
}  // namespace headrace::cli
