// See conversation.h.
#include "bindings/python/native/conversation.h"

#include <nlohmann/json.hpp>
#include <span>

#include "api/chat_request.h"
#include "base/json_depth.h"

namespace headrace::python {
namespace {

using api::Json;

Result<Json> parse_json(const std::optional<std::string>& text, const char* name) {
  if (!text) return Json();
  constexpr int kMaxDepth = 64;
  if (json_depth(*text) > kMaxDepth) {
    return Error{ErrorCode::invalid_argument, "nested more than 64 deep", name, ""};
  }
  auto value = Json::parse(*text, nullptr, false);
  if (value.is_discarded()) return Error{ErrorCode::invalid_argument, "no valid JSON", name, ""};
  return value;
}

std::string joined(const std::vector<TextSegment>& segments) {
  std::string out;
  for (const TextSegment& segment : segments) out += segment.text;
  return out;
}

/// Templates tell nobody what they read: one that uses tools writes another prompt without them, or
/// fails.
Result<void> check_uses_tools(const std::vector<TextSegment>& with_tools,
                              const Result<std::vector<TextSegment>>& without) {
  if (!without.ok() || joined(*without) != joined(with_tools)) return {};
  return Error{ErrorCode::unsupported, "the model's chat template does not use tools", "tools",
               "leave them out, or describe them in a message"};
}

}  // namespace

Result<RenderedConversation> render_conversation(const OpenedModel& model,
                                                 const Conversation& conversation,
                                                 int64_t now_unix_seconds) {
  if (!model.chat_template) {
    return Error{ErrorCode::unsupported, "the model has no chat template", "",
                 "give one with --chat-template, or use generate"};
  }
  HEADRACE_ASSIGN(const Json given, parse_json(conversation.messages, "messages"));
  HEADRACE_ASSIGN(const Json tools, parse_json(conversation.tools, "tools"));
  HEADRACE_ASSIGN(const Json variables, parse_json(conversation.template_args, "template_args"));
  RenderedConversation out;
  HEADRACE_ASSIGN(const Json messages,
                  api::read_messages(given, api::RequestLimits{}, out.warnings));

  TemplateInput input = template_input(*model.tokenizer);
  input.now_unix_seconds = now_unix_seconds;
  input.add_generation_prompt = conversation.adds_generation_prompt;
  const Json none;
  const auto render = [&](const Json& with) {
    return model.chat_template->render(input, messages, with, none, variables);
  };
  HEADRACE_ASSIGN(const auto segments, render(tools.empty() ? none : tools));
  if (!tools.empty()) {
    HEADRACE_TRY(check_uses_tools(segments, render(none)));
  }
  HEADRACE_ASSIGN(out.ids, model.tokenizer->encode(std::span<const TextSegment>(segments), true));
  return out;
}

}  // namespace headrace::python
