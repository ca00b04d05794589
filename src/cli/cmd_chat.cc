// headrace chat: a conversation in the terminal.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/sampling_defaults.h"
#include "base/os/signals.h"
#include "base/os/terminal.h"
#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/line_editor.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/sampling_options.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

struct ChatArgs {
  ModelArgs model;
  SamplingArgs sampling;
  std::string system;
  bool stats = false;
};

constexpr std::string_view kHelp =
    "/help            this list\n"
    "/system [TEXT]   show or set the system message; /system - takes it away\n"
    "/retry           generate the last answer anew\n"
    "/clear           begin a new conversation\n"
    "/save FILE       write the conversation as JSON (headrace render --messages FILE reads it)\n"
    "/stats           where the time of the last answer went, and how full the context is\n"
    "/quit            leave (Ctrl-D too)\n"
    "Ctrl-C stops an answer. A line that ends with \\ goes on in the next one; Alt-Enter begins a\n"
    "new line; all between lines of \"\"\" is one message. // at the beginning sends a /.\n";

/// What the loop works with.
class Chat {
 public:
  Chat(const OpenedModel& model, Engine& engine, Conversation& conversation, bool shows_stats)
      : model_(model),
        engine_(engine),
        conversation_(conversation),
        editor_(state_file("chat_history")),
        to_terminal_(is_terminal(StandardStream::output)),
        shows_stats_(shows_stats) {}

  /// Reads and answers until the end; returns the exit code.
  int loop() {
    // Of the whole loop: a Ctrl-C between the message and its answer stops the answer.
    const InterruptGuard guard({.second_ends = !to_terminal_});
    greet();
    while (flush_output()) {
      LineEditor::Input input = editor_.read_message("> ", ". ");
      if (input.outcome == LineEditor::Outcome::end) break;
      if (input.outcome == LineEditor::Outcome::failed) {
        complain(std::move(input.error));
        break;
      }
      if (input.outcome == LineEditor::Outcome::interrupted) {
        notice("Ctrl-D or /quit leaves");
        continue;
      }
      if (input.text.find_first_not_of(" \t\n") == std::string::npos) continue;
      editor_.remember(input.text);
      if (input.text.starts_with("//")) {
        input.text.erase(0, 1);
      } else if (input.text.starts_with('/')) {
        if (!command(input.text)) break;
        continue;
      }
      show(conversation_.ask(input.text, on_text()));
    }
    return exit_code_;
  }

 private:
  void greet() {
    if (!editor_.interactive()) return;
    notice(fmt::format("{}, {} tokens of context, {}. /help lists commands.",
                       printable(model_.model->info().name), engine_.max_context(),
                       model_.backend->description()));
  }

  /// Remarks of ours are for a person; a pipe gets answers only.
  void notice(const std::string& text) {
    if (!editor_.interactive()) return;
    print(styled(text, Style::dim, colors_on_stdout()) + "\n");
    std::fflush(stdout);
  }

  TextSink on_text() {
    return [this](std::string_view text) {
      print(shown_text(text, to_terminal_));
      return flush_output();
    };
  }

  void show(const Result<Generation>& answer) {
    if (!answer.ok()) {
      const int code = fail(answer.error(), false);
      if (!editor_.interactive()) exit_code_ = code;
      return;
    }
    print("\n");
    std::fflush(stdout);
    if (answer->reason == FinishReason::cancelled) notice("(stopped)");
    if (answer->reason == FinishReason::length) {
      notice(fmt::format("(cut at {} tokens; {} of {} tokens of context are used)",
                         answer->ids.size(), conversation_.num_tokens(), engine_.max_context()));
    }
    if (shows_stats_) print_stats();
  }

  void print_stats() {
    if (conversation_.last_stats()) {
      std::fputs(timings_text(*conversation_.last_stats()).c_str(), stderr);
    }
    std::fputs(
        fmt::format("context     {:6} of {} tokens, {} messages\n", conversation_.num_tokens(),
                    engine_.max_context(), conversation_.num_messages())
            .c_str(),
        stderr);
  }

  void complain(Error error) {
    const int code = fail(error, false);
    if (!editor_.interactive()) exit_code_ = code;
  }

  /// Runs one /command; false to leave.
  bool command(const std::string& line) {
    const size_t space = line.find_first_of(" \n");
    const std::string name = line.substr(0, space);
    const size_t begin =
        space == std::string::npos ? line.size() : line.find_first_not_of(" \n", space);
    const std::string rest = begin == std::string::npos ? "" : line.substr(begin);
    if (name == "/quit" || name == "/exit" || name == "/bye") return false;
    if (name == "/help") {
      print(kHelp);
    } else if (name == "/system") {
      system(rest);
    } else if (name == "/retry") {
      show(conversation_.retry(on_text()));
    } else if (name == "/clear") {
      conversation_.clear();
      notice("a new conversation");
    } else if (name == "/save") {
      save(rest);
    } else if (name == "/stats") {
      print_stats();
    } else {
      complain({ErrorCode::invalid_argument, "unknown command '" + name + "'", "",
                "/help lists them; // at the beginning sends a /"});
    }
    std::fflush(stdout);
    return true;
  }

  void system(const std::string& text) {
    if (text.empty()) {
      print((conversation_.system().empty() ? std::string("no system message of yours")
                                            : shown_text(conversation_.system(), to_terminal_)) +
            "\n");
      return;
    }
    conversation_.set_system(text == "-" ? "" : text);
    notice("from the next answer on");
  }

  void save(const std::string& path) {
    if (path.empty()) {
      complain({ErrorCode::invalid_argument, "no file is given", "", "/save FILE"});
      return;
    }
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) {
      complain(
          {ErrorCode::invalid_argument, "the file is there already", path, "give another name"});
      return;
    }
    std::ofstream file(path, std::ios::binary);
    file << conversation_.messages().dump(2, ' ', false,
                                          nlohmann::ordered_json::error_handler_t::replace)
         << "\n";
    file.close();
    if (!file) {
      std::filesystem::remove(path, ignored);
      complain({ErrorCode::io_error, "cannot be written", path, ""});
      return;
    }
    notice("saved " + printable(path));
  }

  const OpenedModel& model_;
  Engine& engine_;
  Conversation& conversation_;
  LineEditor editor_;
  bool to_terminal_;
  bool shows_stats_;
  int exit_code_ = kDone;
};

Result<int> run_checked(const ChatArgs& args) {
  if (const auto right = check_sampling(args.sampling); !right.ok()) {
    return fail_usage("chat", right.error(), false);
  }
  HEADRACE_ASSIGN(auto model, open_model_of(args.model, true, false));
  if (!model->chat_template) {
    return Error{ErrorCode::unsupported, "the model has no chat template", model->path,
                 "give one with --chat-template FILE, or complete a text with headrace run --raw"};
  }
  std::vector<std::string> warnings;
  const SamplingParams defaults = sampling_defaults(model->checkpoint->metadata(), warnings);
  for (const std::string& text : warnings) warn(text);
  const auto sampling = sampling_of(args.sampling, defaults, model->model->info().vocab_size);
  if (!sampling.ok()) return fail_usage("chat", sampling.error(), false);
  HEADRACE_ASSIGN(const auto engine, model->start_engine());
  Conversation conversation(*model, *engine, *sampling, stop_of(args.sampling));
  conversation.set_system(args.system);
  return Chat(*model, *engine, conversation, args.stats).loop();
}

}  // namespace

Command chat_command() {
  auto args = std::make_shared<ChatArgs>();
  Command command;
  command.name = "chat";
  command.summary = "Hold a conversation in the terminal";
  command.description =
      "Answers are shown as they are generated; Ctrl-C stops the answer, not the program. Lines "
      "can be edited, and earlier ones are kept in $XDG_STATE_HOME/headrace/chat_history.\n\n" +
      std::string(kHelp) +
      "\nWith standard input from a pipe, each line is a message and only answers are printed.";
  auto& options = command.options;
  options.push_back(make_option("--system", "TEXT", "System message", &args->system));
  options.push_back(
      make_option("--stats", "", "Show where the time went after each answer", &args->stats));
  add_model_options(options, args->model);
  options.push_back(chat_template_option(args->model));
  add_sampling_options(options, args->sampling);
  command.examples = {
      {"headrace chat", "with the default model"},
      {"headrace chat --system \"Answer in one sentence.\" --temp 0.3", "a terse assistant"},
      {"headrace chat -m gemma3-270m --chat-template chat.jinja", "a model without a template"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), false);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
