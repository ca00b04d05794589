// Finding one string in others at a cost a budget can bound. Owns the search and its charge; every
// search for text a template chose goes through it.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/chat_template/budget.h"

namespace headrace::jinja {

/// Looks for `needle` in time and steps linear in the bytes searched, however both repeat
/// themselves, and without memory in proportion to either. The needle and the budget outlive it.
class TextSearch {
 public:
  static constexpr size_t npos = std::string_view::npos;

  TextSearch(Budget& budget, std::string_view needle) : budget_(budget), needle_(needle) {}

  /// Where the first occurrence at or after `from` begins, or npos.
  size_t find(std::string_view text, size_t from = 0);
  /// Where the last occurrence begins, or npos.
  size_t rfind(std::string_view text);

 private:
  /// A needle cut in two so that a mismatch right of the cut, or a match of the whole, says how far
  /// to move on (Crochemore and Perrin, Two-way string-matching, J. ACM 38, 1991).
  struct Cut {
    size_t at = 0;
    size_t period = 0;  ///< 0: not computed yet
    bool periodic = false;
  };
  template <class Iterator>
  static Cut cut_of(Iterator needle, size_t size);
  template <class Iterator>
  size_t two_way(Iterator text, size_t text_size, Iterator needle, Cut& cut);

  Budget& budget_;
  std::string_view needle_;
  Cut forward_, backward_;
};

}  // namespace headrace::jinja
