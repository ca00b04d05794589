// What the preparation of all requests has in common, once a body is parsed. Must not know bodies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/chat_prompt.h"
#include "api/chat_request.h"
#include "api/completion_request.h"
#include "api/params_json.h"
#include "api/prepared_request.h"

namespace headrace::api {

ParamsContext params_context(const ServedModel& model);

/// Error (not_found): the request names another model, and that is not allowed.
Result<void> check_model(const ServedModel& model, PreparedRequest& out);

/// One more prompt, with the parameters of `out`. An answer's length that the request did not ask
/// for is cut to what the prompt leaves, with a warning.
Request& add_prompt(const ServedModel& model, std::vector<TokenId> ids, PreparedRequest& out);

/// The ids of `prompt`, cut as the request asks; `what` is "" or which prompt it is. Warns of that,
/// and once where control tokens are spelled that are not looked for. Errors: those of
/// check_prompt_bytes() for what is not to be cut, of the tokenizer.
Result<std::vector<TokenId>> prompt_ids(const Prompt& prompt, const EncodeOptions& options,
                                        const ServedModel& model, const GenerationParams& params,
                                        std::string_view what, std::vector<std::string>& warnings);

/// "prompt[3]", or "" of a request with one prompt alone. `prompt` is one of `all`.
std::string name_of_prompt(const std::vector<Prompt>& all, const Prompt& prompt);

/// Error (context_length_exceeded, at `field`): a text of so many bytes has more tokens than the
/// context, whatever it is.
Result<void> check_prompt_bytes(const ServedModel& model, size_t num_bytes,
                                const std::string& field);

/// How a conversation becomes a prompt. The result refers to `request`.
ChatPromptOptions chat_options(const ChatRequest& request, const Clock& clock);

/// The model's template over `messages`. Errors are at `field`: unsupported (no template), those
/// of render_chat().
Result<std::vector<TextSegment>> chat_segments(const ServedModel& model, const Json& messages,
                                               const ChatPromptOptions& options,
                                               const std::string& field);
/// The same, tokenised.
Result<std::vector<TokenId>> chat_ids(const ServedModel& model, const Json& messages,
                                      const ChatPromptOptions& options, const std::string& field);

/// Of an answer that can be only one: refuses n > 1 and the log-probabilities of prompts.
void refuse_several(Fields& fields, const GenerationParams& params);

}  // namespace headrace::api
