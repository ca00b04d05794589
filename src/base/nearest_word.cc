// See nearest_word.h. The distance is the restricted Damerau-Levenshtein one.
#include "base/nearest_word.h"

#include <algorithm>

namespace headrace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  // A word too long to be a typo would only cost time.
  if (word.size() > 64) return "";
  const auto letters = [](std::string_view text) {
    const size_t first = text.find_first_not_of('-');
    return first == std::string_view::npos ? size_t{0} : text.size() - first;
  };
  std::string best;
  size_t best_distance = std::clamp<size_t>(letters(word) / 3, 1, 3) + 1;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    // A short candidate is near to everything: half of it must be right.
    if (distance < best_distance && distance * 2 <= std::max<size_t>(letters(candidate), 2)) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace headrace
