// headrace run: one completion.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/chat_prompt.h"
#include "api/response_json.h"
#include "app/sampling_defaults.h"
#include "base/os/signals.h"
#include "base/os/terminal.h"
#include "cli/chat_prompt.h"
#include "cli/commands.h"
#include "cli/generate.h"
#include "cli/input.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/sampling_options.h"
#include "cli/session_keeper.h"

namespace headrace::cli {
namespace {

struct RunArgs {
  ModelArgs model;
  SamplingArgs sampling;
  SessionArgs session;
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::string system;
  bool raw = false;
  bool parse_special = false;
  bool stats = false;
  bool json = false;
};

/// Errors: no prompt given, two given, an empty one.
Result<void> check_prompt_options(const RunArgs& args) {
  const auto wrong = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message), "",
                 "give one with -p TEXT, -p - (standard input) or -f FILE"};
  };
  if (args.prompt && !args.prompt_file.empty()) return wrong("both -p and -f are given");
  if (!args.prompt && args.prompt_file.empty()) return wrong("no prompt is given");
  if (args.prompt && args.prompt->empty()) return wrong("the prompt is empty");
  return {};
}

/// What the user wants completed. Errors: those of reading; what was read is empty.
Result<std::string> prompt_of(const RunArgs& args) {
  if (args.prompt && *args.prompt != "-") return *args.prompt;
  const std::string& path = args.prompt ? *args.prompt : args.prompt_file;
  HEADRACE_ASSIGN(std::string text, read_text(path));
  if (!text.empty()) return text;
  return Error{ErrorCode::invalid_argument, "the prompt is empty",
               path == "-" ? "standard input" : path, "write the prompt into it"};
}

Result<std::vector<TokenId>> prompt_ids(const OpenedModel& model, const std::string& prompt,
                                        const RunArgs& args, bool raw) {
  if (raw) return model.tokenizer->encode(prompt, EncodeOptions{true, args.parse_special});
  auto messages = nlohmann::ordered_json::array();
  if (!args.system.empty()) messages.push_back(api::chat_message("system", args.system));
  messages.push_back(api::chat_message("user", prompt));
  return chat_prompt_ids(model, messages, args.parse_special);
}

/// Loads the session, if there is one. Error: it is a conversation, which would be lost.
Result<void> begin_session(SessionKeeper& session, bool read_only) {
  if (!session.is_on()) return {};
  HEADRACE_ASSIGN(const auto loaded, session.load());
  if (!loaded || loaded->note.empty() || read_only) return {};
  return Error{ErrorCode::invalid_argument,
               "this session is a conversation of headrace chat, which run would replace",
               session.file(),
               "go on with headrace chat --session, give another name, or --session-read-only"};
}

nlohmann::json result_json(const OpenedModel& model, const Generation& done,
                           const std::vector<std::string>& warnings) {
  return {{"text", done.text},
          {"token_ids", done.ids},
          {"prompt_tokens", done.stats.prompt_tokens},
          {"completion_tokens", done.ids.size()},
          {"finish_reason", finish_reason_name(done.reason)},
          {"stop_token", done.stop_token >= 0 ? nlohmann::json(done.stop_token) : nlohmann::json()},
          {"seed", done.stats.seed},
          {"model", model.model->info().name},
          {"timings", api::timings_json(done.stats)},
          {"warnings", warnings}};
}

Result<int> run_checked(const RunArgs& args) {
  if (const auto right = check_prompt_options(args); !right.ok()) {
    return fail_usage("run", right.error(), args.json);
  }
  if (const auto right = check_session_args(args.session); !right.ok()) {
    return fail_usage("run", right.error(), args.json);
  }
  if (const auto right = check_sampling(args.sampling); !right.ok()) {
    return fail_usage("run", right.error(), args.json);
  }
  HEADRACE_TRY(check_session_file(args.session));
  HEADRACE_ASSIGN(const std::string prompt, prompt_of(args));
  HEADRACE_ASSIGN(auto model, open_model_of(args.model, true, args.json));
  std::vector<std::string> warnings = model->warnings;
  const auto add_warning = [&](const std::string& text) {
    if (text.empty()) return;
    warnings.push_back(text);
    if (!args.json) warn(text);
  };

  bool raw = args.raw;
  if (!raw && !model->chat_template) {
    raw = true;
    add_warning(
        "the model has no chat template: the prompt is completed as it is; give --raw to say so, "
        "or --chat-template FILE");
  }
  if (raw && !args.system.empty()) add_warning("--system has no effect on a raw completion");
  Request request;
  request.adapters = model->adapters;
  HEADRACE_ASSIGN(request.prompt, prompt_ids(*model, prompt, args, raw));

  std::vector<std::string> ignored_keys;
  const SamplingParams defaults = sampling_defaults(model->checkpoint->metadata(), ignored_keys);
  for (const std::string& text : ignored_keys) add_warning(text);
  auto sampling = sampling_of(args.sampling, defaults, model->model->info().vocab_size);
  if (!sampling.ok()) return fail_usage("run", sampling.error(), args.json);
  request.sampling = std::move(sampling).value();
  HEADRACE_ASSIGN(const auto unknown_breakers,
                  set_dry_breakers(args.sampling, model->tokenizer, request.sampling));
  for (const std::string& text : unknown_breakers) add_warning(text);
  for (const auto& text : sampling_warnings(args.sampling, request.sampling)) add_warning(text);
  request.stop = stop_of(args.sampling);

  HEADRACE_ASSIGN(const auto engine, model->start_engine());
  HEADRACE_ASSIGN(const std::string clamped,
                  fit_to_context(*engine, request.prompt.size(), request.stop,
                                 context_hint(*model, "shorten the prompt")));
  add_warning(clamped);
  SessionKeeper session(args.session, *engine, prefix_scope("", model->adapters, engine->model()));
  HEADRACE_TRY(begin_session(session, args.session.read_only));
  std::vector<TokenId> tokens = request.prompt;
  const bool to_terminal = is_terminal(StandardStream::output);
  HEADRACE_ASSIGN(const Generation done,
                  generate(*engine, model->tokenizer, std::move(request), raw, [&](auto text) {
                    if (!args.json) print(shown_text(text, to_terminal));
                    return flush_output();
                  }));
  if (!args.json) {
    print("\n");
    std::fflush(stdout);
  }
  tokens.insert(tokens.end(), done.ids.begin(), done.ids.end());
  const auto saved = session.save(tokens, "");
  if (args.json) {
    auto result = result_json(*model, done, warnings);
    if (session.is_on()) {
      result["session"] = {{"file", session.file()},
                           {"loaded_tokens", session.num_loaded()},
                           {"saved_tokens", session.num_saved()}};
      if (!saved.ok()) result["session"]["error"] = saved.error().to_string();
    }
    print_json(result);
  }
  // The answer is out: that is all the JSON there is.
  if (!saved.ok()) return fail(saved.error(), false);
  if (args.stats) {
    std::fputs(timings_text(done.stats).c_str(), stderr);
    if (session.is_on()) std::fputs(session.stats_text().c_str(), stderr);
    std::fputs(fmt::format("end         {}\n", finish_reason_name(done.reason)).c_str(), stderr);
  }
  if (done.reason == FinishReason::cancelled && flush_output()) end_by_interrupt();
  return kDone;
}

}  // namespace

Command run_command() {
  auto args = std::make_shared<RunArgs>();
  Command command;
  command.name = "run";
  command.summary = "Answer or complete one prompt";
  command.description =
      "Prints the model's answer as it is generated. The prompt is put into the model's chat "
      "template; with --raw, or where the model has none, the text is completed as it is.\n"
      "Without -m the default model is used, and fetched first if it is not in the store.\n"
      "What is typed is never taken for the model's control tokens (<|im_end|> and the like), "
      "unless --parse-special asks for it. Ctrl-C ends the answer. Sampling runs in this order: "
      "bias, penalties, temperature, top-k, typical-p, top-p, min-p.\n"
      "With --session what was computed is kept in a file: a prompt that begins like the last one "
      "(the same long text before another question) is only computed from where it differs. The "
      "file is of one model, tokenizer, KV type and instruction set, about as large as the KV "
      "cache of its tokens, and readable by its owner alone.";
  auto& options = command.options;
  options.push_back(
      make_option("-p,--prompt", "TEXT", "The prompt; - reads standard input", &args->prompt));
  options.push_back(
      path_option("-f,--file", "FILE", "Read the prompt from a file; - too", &args->prompt_file));
  options.push_back(
      make_option("--system", "TEXT", "System message, for the chat template", &args->system));
  options.push_back(
      make_option("--raw", "", "Complete the text as it is, without the template", &args->raw));
  options.push_back(make_option("--parse-special", "",
                                "Take control tokens in the prompt for what they are",
                                &args->parse_special));
  options.push_back(
      make_option("--stats", "", "Show where the time went, on standard error", &args->stats));
  add_session_options(
      options, args->session,
      "Begin with the tokens whose keys and values FILE holds, as far as the prompt "
      "is the same, and save those of prompt and answer to it");
  add_model_options(options, args->model);
  options.push_back(chat_template_option(args->model));
  add_sampling_options(options, args->sampling);
  options.push_back(json_option(&args->json));
  command.examples = {
      {"headrace run -p \"Why is the sky blue?\"", "ask the default model"},
      {"headrace run -m gemma3-270m --raw -p \"The capital of France is\" -n 16",
       "complete a text with a base model"},
      {"git diff | headrace run --system \"Summarise the change.\" -p - --temp 0",
       "a prompt from a pipe, always the same answer"},
      {"headrace run -p \"Name a fruit.\" --seed 7 --json", "everything about it, as JSON"},
      {"headrace run --session report.session -f report_and_question.txt",
       "read a long text once, ask about it often"},
  };
  command.run = [args] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
