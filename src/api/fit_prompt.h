// Prompts that are cut because their request asks for it (truncate_prompt_tokens, truncation). Each
// cut is a warning with both numbers. Must not know bodies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/chat_prompt.h"
#include "api/prepared_request.h"
#include "headrace/result.h"

namespace headrace::api {

/// Tokens that a prompt may have; nothing: it is not to be cut. Where as many are wanted as fit,
/// there is room besides for the answer's length that was asked for; of a default, for no more of
/// it than a quarter of the context.
std::optional<int64_t> most_prompt_tokens(const ServedModel& model, const GenerationParams& params);

/// The end of `text` that so many tokens may stand for, at least, and a little more; whole
/// characters. All of it, where it is not known how long a token may be.
std::string_view end_of_text(const ServedModel& model, std::string_view text, int64_t num_tokens);

/// The last of `ids`, and with `keeps_bos` the first of them if it begins sequences: as many
/// together as the request allows. `num_bytes`: of the text, if less than all of it was tokenised;
/// else 0. `what`: "" or which prompt it is, for the warning.
void cut_prompt(const ServedModel& model, const GenerationParams& params, bool keeps_bos,
                size_t num_bytes, std::string_view what, std::vector<TokenId>& ids,
                std::vector<std::string>& warnings);

/// chat_ids() for a request whose parameters `out` has. Where they ask for it, the earliest
/// messages that follow the system message are left out, from one user's message up to another's,
/// until the rest fits; the template is rendered at most 14 times. Errors: those of chat_ids();
/// context_length_exceeded with both numbers, where the system message and what begins with the
/// last message of a user are too long.
Result<std::vector<TokenId>> fitting_chat_ids(const ServedModel& model, const Json& messages,
                                              const ChatPromptOptions& options,
                                              const std::string& field, PreparedRequest& out);

}  // namespace headrace::api
