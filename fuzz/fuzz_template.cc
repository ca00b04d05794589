// Chat templates: source, a byte 0, then a conversation as JSON (messages, tools and extra
// variables in one object). Small limits keep each run short; whatever happens must be a Result.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/chat_template/chat_template.h"

namespace {

using Json = nlohmann::ordered_json;

/// Nested deeper than this, nlohmann's own destructor would be the one to fail.
bool is_shallow(std::string_view json) {
  int depth = 0, deepest = 0;
  for (const char c : json) {
    if (c == '[' || c == '{') deepest = deepest < ++depth ? depth : deepest;
    if (c == ']' || c == '}') --depth;
  }
  return deepest < 1000;
}

Json member(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) ? object.at(name) : Json();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t separator = input.find('\0');
  const std::string_view source = input.substr(0, separator);
  Json conversation;
  if (separator != std::string_view::npos && is_shallow(input.substr(separator + 1))) {
    conversation = Json::parse(input.substr(separator + 1), nullptr, false);
  }
  headrace::TemplateLimits limits;
  limits.max_steps = 20'000;
  limits.max_output_bytes = 64 * 1024;
  limits.max_depth = 48;
  const auto parsed = headrace::ChatTemplate::parse(source, limits);
  if (!parsed.ok()) {
    if (parsed.error().message.empty()) __builtin_trap();
    return 0;
  }
  headrace::TemplateInput variables;
  variables.bos_token = "<s>";
  variables.eos_token = "</s>";
  variables.now_unix_seconds = 1768469400;
  const auto segments =
      parsed->render(variables, member(conversation, "messages"), member(conversation, "tools"),
                     Json(), member(conversation, "extra"));
  if (!segments.ok()) return 0;
  size_t total = 0;
  for (size_t i = 0; i < segments->size(); ++i) {
    const auto& segment = (*segments)[i];
    total += segment.text.size();
    // No control character of this kind is in a template that has none: only messages bring it,
    // and what messages bring is untrusted.
    const bool from_message = segment.text.find('\x05') != std::string::npos;
    const bool template_may = source.find('\x05') != std::string_view::npos ||
                              source.find('\\') != std::string_view::npos ||
                              source.find('%') != std::string_view::npos ||
                              source.find("format") != std::string_view::npos ||
                              source.find("striptags") != std::string_view::npos;
    if (segment.text.empty() || (segment.trusted && from_message && !template_may))
      __builtin_trap();
    if (i > 0 && (*segments)[i - 1].trusted == segment.trusted) __builtin_trap();
  }
  if (total > static_cast<size_t>(limits.max_output_bytes)) __builtin_trap();
  return 0;
}
