// Server-sent events as bytes. Must not know what they tell, or sockets.
#pragma once

#include <string>
#include <string_view>

namespace headrace::api {

/// Appends one event. Whatever `data` holds, it stays the data of this one event: each of its lines
/// is a field of its own, and a reader joins them by '\n' ("\r" and "\r\n" are line ends too, as
/// the format has it). `event_name`: one line, cut at its end where there are more; empty: none.
void append_sse(std::string& out, std::string_view event_name, std::string_view data);

/// A comment, which readers skip: it keeps a silent connection open.
void append_sse_comment(std::string& out);

}  // namespace headrace::api
