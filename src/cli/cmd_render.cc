// headrace render: what a chat template makes of a conversation.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/model_files.h"
#include "base/clock.h"
#include "base/os/terminal.h"
#include "cli/commands.h"
#include "cli/generate.h"
#include "cli/input.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/parse_time.h"
#include "cli/report.h"

namespace headrace::cli {
namespace {

struct RenderArgs {
  ModelArgs model;
  std::string template_file;
  std::string messages_file;
  std::string tools_file;
  std::string variables_file;
  std::optional<std::string> now;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  bool no_generation_prompt = false;
  bool json = false;
};

Result<nlohmann::ordered_json> read_json(const std::string& path) {
  HEADRACE_ASSIGN(const std::string text, read_text(path));
  return parse_json(text, path);
}

/// The file's array of messages, or the "messages" of its object.
Result<nlohmann::ordered_json> read_messages(const std::string& path) {
  HEADRACE_ASSIGN(auto json, read_json(path));
  if (json.is_object() && json.contains("messages"))
    json = nlohmann::ordered_json(json["messages"]);
  if (!json.is_array()) {
    return Error{ErrorCode::invalid_argument,
                 "expected a JSON array of messages like {\"role\": ..., \"content\": ...}", path,
                 ""};
  }
  return json;
}

/// The template of a model's file.
Result<std::string> template_of_model(const std::string& path) {
  HEADRACE_ASSIGN(const auto checkpoint, open_model_files(path));
  HEADRACE_ASSIGN(const auto source, chat_template_of(*checkpoint));
  if (source) return *source;
  return Error{ErrorCode::unsupported, "the model has no chat template", path,
               "give one with --template FILE"};
}

/// What the user names but the model.
struct RenderInput {
  std::optional<ChatTemplate> chat_template;
  nlohmann::ordered_json messages;
  nlohmann::ordered_json tools;
  nlohmann::ordered_json variables;
};

Result<RenderInput> read_given(const RenderArgs& args) {
  RenderInput given;
  if (!args.template_file.empty()) {
    HEADRACE_ASSIGN(const std::string source, read_text(args.template_file));
    auto parsed = ChatTemplate::parse(source);
    if (!parsed.ok()) return std::move(parsed).error().at(args.template_file);
    given.chat_template = std::move(parsed).value();
  }
  HEADRACE_ASSIGN(given.messages, read_messages(args.messages_file));
  if (!args.tools_file.empty()) {
    HEADRACE_ASSIGN(given.tools, read_json(args.tools_file));
  }
  if (!args.variables_file.empty()) {
    HEADRACE_ASSIGN(given.variables, read_json(args.variables_file));
  }
  return given;
}

nlohmann::json segments_json(const std::vector<TextSegment>& segments) {
  auto out = nlohmann::json::array();
  for (const TextSegment& segment : segments) {
    out.push_back({{"text", segment.text}, {"trusted", segment.trusted}});
  }
  return out;
}

Result<int> run_checked(const RenderArgs& args) {
  Result<int64_t> now = args.now ? parse_time(*args.now) : SystemClock().unix_seconds();
  if (!now.ok()) return fail_usage("render", std::move(now).error().at("--now"), args.json);
  HEADRACE_ASSIGN(RenderInput given, read_given(args));
  TemplateInput input;
  // With --template alone there is no vocabulary: ids are then not given.
  std::shared_ptr<const Tokenizer> tokenizer;
  if (args.template_file.empty() || !args.model.model.empty()) {
    HEADRACE_ASSIGN(const std::string path, find_model(args.model, true));
    HEADRACE_ASSIGN(tokenizer, open_tokenizer(path, ""));
    input = template_input(*tokenizer);
    if (!given.chat_template) {
      HEADRACE_ASSIGN(const std::string source, template_of_model(path));
      HEADRACE_ASSIGN(given.chat_template, ChatTemplate::parse(source));
    }
  }
  input.now_unix_seconds = *now;
  if (args.bos_token) input.bos_token = *args.bos_token;
  if (args.eos_token) input.eos_token = *args.eos_token;
  input.add_generation_prompt = !args.no_generation_prompt;
  auto segments =
      given.chat_template->render(input, given.messages, given.tools, nullptr, given.variables);
  if (!segments.ok()) {
    Error error = std::move(segments).error();
    return args.template_file.empty() ? error : std::move(error).at(args.template_file);
  }
  std::string prompt;
  for (const TextSegment& segment : *segments) prompt += segment.text;
  if (!args.json) {
    print(shown_text(prompt, is_terminal(StandardStream::output)));
    return kDone;
  }
  nlohmann::json result{{"prompt", prompt}, {"segments", segments_json(*segments)}};
  result["ids"] = nullptr;
  if (tokenizer) {
    HEADRACE_ASSIGN(const auto ids,
                    tokenizer->encode(std::span<const TextSegment>(*segments), true));
    result["ids"] = ids;
  }
  print_json(result);
  return kDone;
}

}  // namespace

Command render_command() {
  auto args = std::make_shared<RenderArgs>();
  Command command;
  command.name = "render";
  command.summary = "Show the prompt that a chat template makes";
  command.description =
      "Renders a conversation with a model's chat template, or with one from a file, and prints "
      "the prompt as it is. The JSON form adds the segments, of which only the trusted ones are "
      "searched for control tokens, and the token ids (null without a model).";
  auto& options = command.options;
  options.push_back(model_option(args->model));
  options.push_back(path_option("--template", "FILE", "Jinja template to use", &args->template_file,
                                "the model's"));
  options.push_back(path_option("--messages", "FILE", "JSON array of messages; - is standard input",
                                &args->messages_file));
  options.back().required = true;
  options.push_back(path_option("--tools", "FILE", "JSON array of tools", &args->tools_file));
  options.push_back(path_option("--variables", "FILE", "JSON object of further variables",
                                &args->variables_file));
  options.push_back(make_option("--no-generation-prompt", "", "Do not begin the assistant's answer",
                                &args->no_generation_prompt));
  options.push_back(make_option("--now", "TIME",
                                "Time for strftime_now: seconds since 1970, or 2026-01-31T12:30:00",
                                &args->now, "now"));
  options.push_back(
      make_option("--bos-token", "TEXT", "Value of bos_token", &args->bos_token, "the model's"));
  options.push_back(
      make_option("--eos-token", "TEXT", "Value of eos_token", &args->eos_token, "the model's"));
  options.push_back(json_option(&args->json));
  command.examples = {
      {"echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | headrace render --messages -",
       "the default model's prompt"},
      {"headrace render --template chat.jinja --messages m.json --now 2026-01-31 --json",
       "a template from a file, at a fixed time"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
