// What the standard streams are connected to.
#pragma once

#include <string>

namespace headrace {

enum class StandardStream { input, output, error };

bool is_terminal(StandardStream stream);

/// Columns of the terminal behind `stream`; `fallback` where there is none.
int terminal_columns(StandardStream stream, int fallback);

}  // namespace headrace
