#include "text/chat_template/text_search.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace headrace::jinja {

namespace {

/// Up to so many bytes, the C++ library's search is fast enough at its worst, and much faster at
/// its best.
constexpr size_t kShortNeedle = 32;

template <class Iterator>
auto at(Iterator text, size_t i) {
  return text[static_cast<std::ptrdiff_t>(i)];
}

struct Suffix {
  size_t begin = 0, period = 1;
};

/// The greatest suffix in the order of bytes (or its reverse) and the period of that suffix.
template <class Iterator, class Before>
Suffix greatest_suffix(Iterator text, size_t size, Before before) {
  Suffix best;
  size_t candidate = 1, matched = 0;
  while (candidate + matched < size) {
    const auto a = at(text, best.begin + matched), b = at(text, candidate + matched);
    if (a == b) {
      if (++matched == best.period) {
        candidate += best.period;
        matched = 0;
      }
    } else if (before(b, a)) {
      candidate += matched + 1;
      matched = 0;
      best.period = candidate - best.begin;
    } else {
      best = {candidate, 1};
      candidate += 1;
      matched = 0;
    }
  }
  return best;
}

}  // namespace

template <class Iterator>
TextSearch::Cut TextSearch::cut_of(Iterator needle, size_t size) {
  const Suffix up = greatest_suffix(needle, size, std::less<char>());
  const Suffix down = greatest_suffix(needle, size, std::greater<char>());
  const Suffix& suffix = up.begin > down.begin ? up : down;
  const auto begin = static_cast<std::ptrdiff_t>(suffix.begin);
  if (std::equal(needle, needle + begin, needle + static_cast<std::ptrdiff_t>(suffix.period))) {
    return {suffix.begin, suffix.period, true};
  }
  return {suffix.begin, std::max(suffix.begin, size - suffix.begin) + 1, false};
}

template <class Iterator>
size_t TextSearch::two_way(Iterator text, size_t text_size, Iterator needle, Cut& cut) {
  const size_t size = needle_.size();
  if (text_size < size) return npos;
  if (cut.period == 0) {
    budget_.step_bytes(size);
    cut = cut_of(needle, size);
  }
  size_t known = 0;  // of a periodic needle: how many bytes are known to match after a move
  for (size_t pos = 0; pos + size <= text_size;) {
    size_t i = std::max(cut.at, known);
    while (i < size && at(needle, i) == at(text, pos + i)) ++i;
    if (i < size) {
      pos += i - cut.at + 1;
      known = 0;
      continue;
    }
    i = cut.at;
    while (i > known && at(needle, i - 1) == at(text, pos + i - 1)) --i;
    if (i <= known) return pos;
    pos += cut.period;
    known = cut.periodic ? size - cut.period : 0;
  }
  return npos;
}

size_t TextSearch::find(std::string_view text, size_t from) {
  if (from > text.size()) return npos;
  const auto rest = text.substr(from);
  const size_t found = needle_.size() <= kShortNeedle
                           ? rest.find(needle_)
                           : two_way(rest.begin(), rest.size(), needle_.begin(), forward_);
  budget_.step_bytes(found == npos ? rest.size() : found + needle_.size());
  return found == npos ? npos : from + found;
}

size_t TextSearch::rfind(std::string_view text) {
  size_t found = npos;
  if (needle_.size() <= kShortNeedle) {
    found = text.rfind(needle_);
  } else {
    const size_t back = two_way(text.rbegin(), text.size(), needle_.rbegin(), backward_);
    if (back != npos) found = text.size() - back - needle_.size();
  }
  budget_.step_bytes(text.size() - (found == npos ? 0 : found));
  return found;
}

}  // namespace headrace::jinja
