// A conversation becomes a prompt, read as the HTTP API and `headrace batch` read it. Must not know
// Python.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/open_model.h"
#include "headrace/result.h"

namespace headrace::python {

/// JSON texts; none: not given.
struct Conversation {
  std::string messages;
  std::optional<std::string> tools;          ///< an array of objects
  std::optional<std::string> template_args;  ///< an object: further variables of the template
  bool adds_generation_prompt = true;
};

struct RenderedConversation {
  std::vector<TokenId> ids;
  std::vector<std::string> warnings;  ///< of fields that nothing reads, roles that are renamed
};

/// Errors: unsupported (no chat template; tools that the template does not write into the prompt);
/// those of api::read_messages, at their fields; those of ChatTemplate::render.
Result<RenderedConversation> render_conversation(const OpenedModel& model,
                                                 const Conversation& conversation,
                                                 int64_t now_unix_seconds);

}  // namespace headrace::python
