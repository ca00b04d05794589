// The endpoints around generation: text to tokens and back, templates, counts. JSON in, JSON out,
// as text where an answer may be much longer than its request.
// Must not know sockets or the engine.
#pragma once

#include <string>

#include "api/json.h"
#include "api/served_model.h"
#include "base/clock.h"
#include "headrace/result.h"

namespace headrace::api {

/// All errors have the field in `where`.

/// llama-server's {"content", "add_special": false, "parse_special": true, "with_pieces": false}
/// and vLLM's {"prompt", "add_special_tokens": true, "return_token_strs"} or {"messages", ...}, to
/// {"tokens", "count", "max_model_len", "token_strs", "warnings"}. A token with its piece is
/// {"id", "piece"}; a piece that is not UTF-8 is an array of bytes. The text of the answer is all
/// that is kept of it: besides, there are the ids.
Result<std::string> tokenize(const Json& body, const ServedModel& model, const Clock& clock);

/// {"tokens"} to {"content"}, which vLLM calls "prompt": both are there. As text.
Result<std::string> detokenize(const Json& body, const ServedModel& model);

/// {"messages", and how a chat request shapes its prompt} to {"prompt", "warnings"}.
Result<Json> apply_template(const Json& body, const ServedModel& model, const Clock& clock);

/// Anthropic's {"system", "messages"} to {"input_tokens"}.
Result<Json> count_tokens(const Json& body, const ServedModel& model, const Clock& clock);

}  // namespace headrace::api
