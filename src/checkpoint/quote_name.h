// Names from files, made fit for one line of an error message.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

/// `text` in single quotes; bytes that are not printable ASCII as \xNN; cut after 80 bytes.
std::string quote_name(std::string_view text);

}  // namespace headrace
