// Reading what a user names: text from a file or standard input, JSON with bounded nesting, lists
// of ids.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/params.h"
#include "headrace/result.h"

namespace headrace::cli {

/// All of a file; "-" is standard input. Errors: not_found, io_error (a directory, unreadable,
/// closed), resource_exhausted (over 1 GiB).
Result<std::string> read_text(const std::string& path);

/// Errors (invalid_argument): no JSON, with the byte where it breaks off; nested deeper than 64.
Result<nlohmann::ordered_json> parse_json(std::string_view text, const std::string& where);

/// A JSON array of ids, an object whose "ids" or "token_ids" is one, or plain numbers separated by
/// spaces, commas or line ends. Errors (invalid_argument): anything else; a number that is no id of
/// any vocabulary.
Result<std::vector<TokenId>> parse_ids(std::string_view text, const std::string& where);

/// Error (invalid_argument): an id that is not below `vocab_size`.
Result<void> check_ids(std::span<const TokenId> ids, int64_t vocab_size, const std::string& where);

}  // namespace headrace::cli
