// For the tests of this folder: templates in, text out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template/chat_template.h"

namespace headrace::test {

using Json = nlohmann::ordered_json;

/// A Thursday: 2026-01-15T09:30:00 UTC.
inline constexpr int64_t kNow = 1768469400;

inline TemplateInput make_input() {
  TemplateInput input;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.now_unix_seconds = kNow;
  return input;
}

inline Result<std::vector<TextSegment>> render_segments(std::string_view source,
                                                        const Json& variables = Json(),
                                                        const Json& messages = Json::array(),
                                                        const TemplateLimits& limits = {}) {
  HEADRACE_ASSIGN(const auto parsed, ChatTemplate::parse(source, limits));
  return parsed.render(make_input(), messages, Json(), Json(), variables);
}

inline std::string joined(const std::vector<TextSegment>& segments) {
  std::string text;
  for (const auto& segment : segments) text += segment.text;
  return text;
}

/// The output, or "error: " and the message.
inline std::string render(std::string_view source, const Json& variables, const Json& messages) {
  const auto segments = render_segments(source, variables, messages);
  if (!segments.ok()) return "error: " + segments.error().to_string();
  return joined(*segments);
}

inline std::string render(std::string_view source, const Json& variables = Json()) {
  return render(source, variables, Json::array());
}

/// What an expression prints.
inline std::string eval(std::string_view expression, const Json& variables = Json()) {
  return render("{{ " + std::string(expression) + " }}", variables);
}

/// The output with untrusted parts in [[ ]].
inline std::string marked(std::string_view source, const Json& variables) {
  const auto segments = render_segments(source, variables);
  if (!segments.ok()) return "error: " + segments.error().to_string();
  std::string text;
  for (const auto& segment : *segments) {
    text += segment.trusted ? segment.text : "[[" + segment.text + "]]";
  }
  return text;
}

}  // namespace headrace::test
