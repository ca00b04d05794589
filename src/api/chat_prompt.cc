// See chat_prompt.h.
#include "api/chat_prompt.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace headrace::api {
namespace {

/// A text that no message has in it.
std::string mark_for(const Json& messages) {
  std::string all;
  for (const Json& message : messages) all += message.value("content", "") + '\n';
  std::string mark;
  for (int n = 0; mark.empty() || all.find(mark) != std::string::npos; ++n) {
    mark = "<<end of the message to continue " + std::to_string(n) + ">>";
  }
  return mark;
}

/// Cuts the segments before `mark`, which must stand in them once.
Result<void> cut_at(std::vector<TextSegment>& segments, const std::string& mark) {
  std::string all;
  for (const TextSegment& segment : segments) all += segment.text;
  const size_t at = all.find(mark);
  if (at == std::string::npos || all.find(mark, at + 1) != std::string::npos) {
    return Error{ErrorCode::unsupported,
                 "the model's chat template changes the last message, so it cannot be continued",
                 "continue_final_message", ""};
  }
  size_t left = at;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (left <= segments[i].text.size()) {
      segments[i].text.resize(left);
      segments.resize(left == 0 ? i : i + 1);
      break;
    }
    left -= segments[i].text.size();
  }
  return {};
}

}  // namespace

Json chat_message(std::string_view role, std::string_view content) {
  return {{"role", std::string(role)}, {"content", std::string(content)}};
}

Result<std::vector<TextSegment>> render_chat(const ChatTemplate& chat_template,
                                             const Tokenizer& tokenizer, const Json& messages,
                                             const ChatPromptOptions& options) {
  TemplateInput input = template_input(tokenizer);
  input.now_unix_seconds = options.now_unix_seconds;
  input.add_generation_prompt = options.adds_generation_prompt;
  const Json none;
  const Json& variables = options.variables != nullptr ? *options.variables : none;
  if (!options.continues_last_message) {
    return chat_template.render(input, messages, none, none, variables);
  }
  HEADRACE_CHECK(!messages.empty());
  // Templates strip and rearrange what they are given, but keep the end of a text where it is.
  const std::string mark = mark_for(messages);
  Json marked = messages;
  marked.back()["content"] = marked.back()["content"].get<std::string>() + mark;
  HEADRACE_ASSIGN(auto segments, chat_template.render(input, marked, none, none, variables));
  HEADRACE_TRY(cut_at(segments, mark));
  return segments;
}

Result<std::vector<TokenId>> chat_prompt_ids(const ChatTemplate& chat_template,
                                             const Tokenizer& tokenizer, const Json& messages,
                                             const ChatPromptOptions& options) {
  HEADRACE_ASSIGN(auto segments, render_chat(chat_template, tokenizer, messages, options));
  if (options.parses_special) {
    for (TextSegment& segment : segments) segment.trusted = true;
  }
  return tokenizer.encode(std::span<const TextSegment>(segments), true);
}

}  // namespace headrace::api
