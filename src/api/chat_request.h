// The body of POST /v1/chat/completions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/generation_params.h"
#include "api/json.h"
#include "api/params_json.h"
#include "headrace/result.h"

namespace headrace::api {

struct ChatRequest {
  GenerationParams params;
  /// As a template wants them: an array of objects whose "content" is a string.
  std::shared_ptr<const Json> messages;
  /// chat_template_kwargs: an object, or null.
  std::shared_ptr<const Json> template_variables;
  bool adds_generation_prompt = true;
  bool continues_last_message = false;  ///< the last message is the beginning of the answer
  std::vector<std::string> warnings;
};

/// Errors (400): a field of a wrong type or out of range, one that is not built, no messages.
Result<ChatRequest> parse_chat_request(const Json& body, const ParamsContext& context);

/// The messages of a request. Roles are system, developer (which templates know as system), user
/// and assistant; content is a string, or parts of type "text", which are joined by line ends.
/// Errors name the message and field: images and other parts, tool calls, unknown roles.
Result<Json> read_messages(const Json& value, const RequestLimits& limits,
                           std::vector<std::string>& warnings);

/// One of them, which stands at `path`.
Result<Json> read_message(const Json& value, const std::string& path, const RequestLimits& limits,
                          std::vector<std::string>& warnings);
/// Its content: a string, or parts.
Result<std::string> content_text(const Json& content, const std::string& path,
                                 std::vector<std::string>& warnings);
Result<void> check_num_messages(size_t num, const RequestLimits& limits, const std::string& path);

}  // namespace headrace::api
