// The prompt of a conversation with an opened model.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "app/open_model.h"

namespace headrace::cli {

/// Renders `messages` with the model's template, which must be there, and tokenises the result. The
/// template's own control tokens become ids, those typed by a user stay text unless
/// `parse_special`. Errors: the template's own words, limits.
Result<std::vector<TokenId>> chat_prompt_ids(const OpenedModel& model,
                                             const nlohmann::ordered_json& messages,
                                             bool parse_special);

}  // namespace headrace::cli
