// Values laid out over several lines, for people.
#pragma once

#include "text/chat_template/interpreter.h"

namespace headrace::jinja {

/// pprint.pformat(value) of Python 3.11: the repr, dictionaries sorted by key, broken into lines of
/// at most 80 columns where it can be. Trusted only if every part of the value is.
Text pretty_text(Interpreter& in, const Value& value);

}  // namespace headrace::jinja
