// Tokens to a syntax tree, with the grammar of Jinja 3.1, its loop controls and transformers'
// generation blocks.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/chat_template/ast.h"

namespace headrace::jinja {

/// The statements of a template. Faults carry the line, what was expected and what was found;
/// include, import and extends are unsupported; nesting past max_depth is resource_exhausted.
Body parse_template(std::string_view source, int32_t max_depth);

}  // namespace headrace::jinja
