// The nearest known word to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`.
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate fewest edits away, or "" if none is near enough to be meant (a third of the
/// letters, at least one and at most three). The first of equals wins.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace headrace
