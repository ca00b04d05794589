// The conversation of Anthropic's Messages API. Must not know answers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/fields.h"
#include "api/json.h"
#include "api/limits.h"
#include "api/prepared_request.h"
#include "headrace/result.h"

namespace headrace::api {

struct AnthropicConversation {
  Json messages;  ///< as a template wants them, the system prompt first; turns alternate
  bool continues_last_message = false;  ///< it ends with the beginning of the answer
  std::vector<std::string> warnings;
};

/// Reads "system" and "messages". Neighbours of one role become one message, as there. Errors
/// (400) name the field: images, tools, other roles.
Result<AnthropicConversation> read_anthropic(Fields& fields, const RequestLimits& limits);

/// As prepare_anthropic(), of a request that is counted and never run: it needs no max_tokens.
Result<PreparedRequest> prepare_anthropic_count(const Json& body, const ServedModel& model,
                                                const Clock& clock);

}  // namespace headrace::api
