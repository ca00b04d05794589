// From messages to a prompt: the chat template's output and its token ids.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/open_model.h"

namespace headrace::cli {

/// {"role": role, "content": content}.
nlohmann::ordered_json chat_message(std::string_view role, std::string_view content);

/// Renders `messages` with the model's template, which must be there, and tokenises the result. The
/// template's own control tokens become ids, those typed by a user stay text unless
/// `parse_special`. Errors: the template's own words, limits.
Result<std::vector<TokenId>> chat_prompt_ids(const OpenedModel& model,
                                             const nlohmann::ordered_json& messages,
                                             bool parse_special);

/// Seconds since 1970 of "1767225600", "2026-01-01", "2026-01-01T12:30" or "2026-01-01T12:30:15",
/// all in UTC. Errors: invalid_argument.
Result<int64_t> parse_time(std::string_view text);

}  // namespace headrace::cli
