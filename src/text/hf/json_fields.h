// Reading the JSON of tokenizer files: fields that may be missing or of another type, and errors
// that name them. Must not know what the fields mean.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"

namespace headrace::text {

inline constexpr std::string_view kTokenizerJson = "tokenizer.json";

/// Error (corrupt_data unless `code` says otherwise) at a key of tokenizer.json.
Error bad_field(std::string_view key, std::string message,
                ErrorCode code = ErrorCode::corrupt_data);

/// A JSON object of at most 128 MiB, nested at most 64 deep. Error (corrupt_data) with `file`.
Result<nlohmann::json> parse_object(std::string_view text, std::string_view file);

/// The field, or null where `object` is none or lacks it.
const nlohmann::json& member(const nlohmann::json& object, const char* name);
bool is_true(const nlohmann::json& object, const char* name);
bool flag_or(const nlohmann::json& object, const char* name, bool otherwise);
/// The text of a field; `otherwise` where it is missing or null. Error: it is something else.
Result<std::string> text_or(const nlohmann::json& object, const char* name, std::string otherwise,
                            std::string_view key);
/// A whole number from 0 to `most`; `otherwise` where it is missing or null.
Result<size_t> count_or(const nlohmann::json& object, const char* name, size_t otherwise,
                        size_t most, std::string_view key);
/// The integers of a list, or the only one.
std::vector<int64_t> listed_ids(const nlohmann::json& value);
/// A value in a message: its JSON, cut short.
std::string shown(const nlohmann::json& value);

}  // namespace headrace::text
