// Python's two ways to format: "..." % values and "...".format(values).
#pragma once

#include "text/chat_template/builtins.h"

namespace headrace::jinja {

/// format % arguments; `arguments` is a tuple, a dict or one value.
Value format_percent(Interpreter& in, const Text& format, const Value& arguments);
/// format.format(*args, **kwargs).
Value format_braces(Interpreter& in, const Text& format, const Args& args);

}  // namespace headrace::jinja
