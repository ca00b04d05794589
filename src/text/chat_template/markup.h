// HTML escaping, for strings that `safe` or `escape` marked: what they are joined with is escaped
// (markupsafe's rule), whatever the template meant by it.
#pragma once

#include "text/chat_template/text.h"

namespace headrace::jinja {

/// Appends `text` with & < > ' " escaped where `escape` is set; trust is kept per character.
void append_escaped_if(TextBuilder& out, const Text& text, bool escape);

/// Decodes character references: numeric ones and the common names.
Text unescape_html(Budget& budget, const Text& text);

}  // namespace headrace::jinja
