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
#include "cli/input.h"
#include "cli/line_editor.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/sampling_options.h"
#include "cli/session_keeper.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

struct ChatArgs {
  ModelArgs model;
  SamplingArgs sampling;
  SessionArgs session;
  std::string system;
  bool stats = false;
};

/// A line that begins with spaces keeps its shape, in the description too.
constexpr std::string_view kHelp =
    "  /help            this list\n"
    "  /system [TEXT]   show or set the system message; /system - takes it away\n"
    "  /retry           generate the last answer anew\n"
    "  /clear           begin a new conversation\n"
    "  /save FILE       write the messages as JSON, for headrace render --messages\n"
    "  /save            write the file of --session now, not only at the end\n"
    "  /stats           where the last answer's time went; how full the context is\n"
    "  /quit            leave (Ctrl-D too)\n";
constexpr std::string_view kTypingHelp =
    "Ctrl-C stops an answer. A line that ends with \\ goes on in the next one; Alt-Enter begins a "
    "new line; all between lines of \"\"\" is one message. // at the beginning sends a /.\n";

/// What the loop works with.
class Chat {
 public:
  Chat(const OpenedModel& model, Engine& engine, Conversation& conversation, SessionKeeper& session,
       bool shows_stats)
      : model_(model),
        engine_(engine),
        conversation_(conversation),
        session_(session),
        editor_(state_file("chat_history")),
        to_terminal_(is_terminal(StandardStream::output)),
        shows_stats_(shows_stats) {}

  /// Reads and answers until the end, and saves the session; returns the exit code.
  int run() {
    greet();
    for (bool is_first = true;; is_first = false) {
      loop();
      if (save_session()) return exit_code_;
      if (!is_first || !editor_.interactive() || was_terminated_) return kFailed;
      // A person may keep what was said in another place.
      notice("/save FILE keeps the messages elsewhere; leave again to try again");
    }
  }

 private:
  void loop() {
    // Of the whole loop: a Ctrl-C between the message and its answer stops the answer. With a
    // session to save, the end of the terminal is an end like any other.
    const InterruptGuard guard({.catch_terminate = session_.is_on(), .second_ends = !to_terminal_});
    while (flush_output() && !(was_terminated_ = InterruptGuard::terminated())) {
      LineEditor::Input input = editor_.read_message("> ", ". ");
      if (input.outcome == LineEditor::Outcome::end) break;
      if (input.outcome == LineEditor::Outcome::failed) {
        complain(std::move(input.error));
        break;
      }
      if (input.outcome == LineEditor::Outcome::interrupted) {
        if (!InterruptGuard::terminated()) notice("Ctrl-D or /quit leaves");
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
  }

  void greet() {
    if (!editor_.interactive()) return;
    notice(fmt::format("{}, {} tokens of context, {}. /help lists commands.",
                       printable(model_.model->info().name), engine_.max_context(),
                       model_.backend->description()));
    if (session_.has_loaded()) {
      notice(fmt::format("Going on with {}: {} messages, {} tokens.", printable(session_.file()),
                         conversation_.num_messages(), conversation_.num_tokens()));
    }
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
      print(std::string(kHelp) + wrapped(kTypingHelp, 80, 0));
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

  /// Nothing to save is fine too.
  bool save_session() {
    if (!session_.is_on() || !conversation_.has_changed()) return true;
    if (conversation_.num_messages() == 0 && !session_.has_loaded()) return true;
    const auto saved = session_.save(
        conversation_.tokens(),
        conversation_.messages().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    if (!saved.ok()) {
      complain(saved.error());
      return false;
    }
    if (session_.num_saved() > 0) notice("saved " + printable(session_.file()));
    return true;
  }

  void save(const std::string& path) {
    if (path.empty() && session_.is_read_only()) {
      complain({ErrorCode::invalid_argument, "the session is only read", "",
                "/save FILE writes the messages elsewhere"});
      return;
    }
    if (path.empty() && session_.is_on()) {
      save_session();
      return;
    }
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
  SessionKeeper& session_;
  LineEditor editor_;
  bool to_terminal_;
  bool shows_stats_;
  bool was_terminated_ = false;
  int exit_code_ = kDone;
};

/// Takes up the conversation of the session's file, if there is one.
Result<void> resume(SessionKeeper& session, bool read_only, Conversation& conversation) {
  if (!session.is_on()) return {};
  HEADRACE_ASSIGN(auto loaded, session.load());
  if (!loaded) return {};
  if (loaded->note.empty()) {
    if (read_only) return {};
    return Error{ErrorCode::invalid_argument,
                 "this session is one of headrace run, which chat would replace", session.file(),
                 "give another name, or --session-read-only"};
  }
  HEADRACE_ASSIGN(const auto json, parse_json(loaded->note, session.file()));
  auto messages = check_messages(json);
  if (!messages.ok()) return std::move(messages).error().at(session.file());
  conversation.restore(std::move(messages).value(), std::move(loaded->tokens));
  return {};
}

Result<int> run_checked(const ChatArgs& args) {
  if (const auto right = check_session_args(args.session); !right.ok()) {
    return fail_usage("chat", right.error(), false);
  }
  if (const auto right = check_sampling(args.sampling); !right.ok()) {
    return fail_usage("chat", right.error(), false);
  }
  HEADRACE_TRY(check_session_file(args.session));
  HEADRACE_ASSIGN(auto model, open_model_of(args.model, true, false));
  if (!model->chat_template) {
    return Error{ErrorCode::unsupported, "the model has no chat template", model->path,
                 "give one with --chat-template FILE, or complete a text with headrace run --raw"};
  }
  std::vector<std::string> warnings;
  const SamplingParams defaults = sampling_defaults(model->checkpoint->metadata(), warnings);
  for (const std::string& text : warnings) warn(text);
  auto sampling = sampling_of(args.sampling, defaults, model->model->info().vocab_size);
  if (!sampling.ok()) return fail_usage("chat", sampling.error(), false);
  HEADRACE_ASSIGN(const auto unknown_breakers,
                  set_dry_breakers(args.sampling, model->tokenizer, *sampling));
  for (const std::string& text : unknown_breakers) warn(text);
  for (const std::string& text : sampling_warnings(args.sampling, *sampling)) warn(text);
  HEADRACE_ASSIGN(const auto engine, model->start_engine());
  Conversation conversation(*model, *engine, *sampling, stop_of(args.sampling));
  SessionKeeper session(args.session, *engine, prefix_scope("", model->adapters, engine->model()));
  HEADRACE_TRY(resume(session, args.session.read_only, conversation));
  if (!args.system.empty()) conversation.set_system(args.system);
  return Chat(*model, *engine, conversation, session, args.stats).run();
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
      std::string(kHelp) + "\n" + std::string(kTypingHelp) +
      "\nWith --session the conversation and what was computed of it are kept in a file, saved at "
      "the end: the next chat with that file goes on where it ended. The file is of one model, "
      "tokenizer, KV type and instruction set, about as large as the KV cache of its tokens, and "
      "readable by its owner alone.\n"
      "\nWith standard input from a pipe, each line is a message and only answers are printed.";
  auto& options = command.options;
  options.push_back(make_option("--system", "TEXT", "System message", &args->system));
  options.push_back(
      make_option("--stats", "", "Show where the time went after each answer", &args->stats));
  add_session_options(options, args->session,
                      "Go on with the conversation in FILE, and save it there at the end");
  add_model_options(options, args->model);
  options.push_back(chat_template_option(args->model));
  add_sampling_options(options, args->sampling);
  command.examples = {
      {"headrace chat", "with the default model"},
      {"headrace chat --system \"Answer in one sentence.\" --temp 0.3", "a terse assistant"},
      {"headrace chat --session talk.session", "a conversation that goes on another day"},
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
