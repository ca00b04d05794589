// JSON written straight into text, for answers of which a tree of values would take many times the
// memory. Must not know what is written.
#pragma once

#include <string>
#include <string_view>

namespace headrace::api {

/// `text` as a string of JSON, in quotes; what is not UTF-8 becomes U+FFFD. The bytes are those
/// that Json::dump() gives.
void append_json_string(std::string& out, std::string_view text);

}  // namespace headrace::api
