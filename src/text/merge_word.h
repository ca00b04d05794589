// Merges a word of any length window by window, with the result of merging it whole. Holds memory
// for one window, so that a huge word takes no more time per byte than a long one. Must not know
// vocabularies.
//
// Why it is exact. Cut a word into parts such that merging any two neighbouring parts, as a word
// of their own, never joins a pair across the cut between them. Then merging the whole word joins
// across no cut, and so gives the tokens of the parts. For suppose it did, and look at the first
// such pair, between the parts L and R. Until then every part went its own way; the next join is
// always the one of lowest (rank, position), so the joins in L and R came in the order they have
// in the word LR. The same two symbols therefore meet in LR, and nothing in LR precedes their
// join there either: LR joins across the cut, against the assumption.
//
// The parts are, in turn, some tokens of a window and the one token after them. That window
// joined across neither end of this token. The next window begins with it; if the same token
// comes out again, the window has not joined across its end, which is the next cut. If another
// one does, what lies right of a window mattered deep inside it, and the whole word is merged
// again in longer windows; one as long as the word is plain merging.
#pragma once

#include <span>

#include "text/merge_engine.h"

namespace headrace::text {

/// Symbols in a window: few enough that a core's own cache holds all about them.
inline constexpr size_t kMergeWindow = size_t{1} << 14;

/// Windows do not grow beyond this many symbols, so that memory stays bounded (merging takes
/// about 40 bytes a symbol). A word that would need longer ones is cut where they end.
inline constexpr size_t kMaxMergeWindow = size_t{1} << 25;

/// Merges a word and hands on its tokens in order.
///
/// `fill(skip, limit)` sets engine.symbols() to those of the word from `skip` bytes after where it
/// began the last time (at first, after the beginning of the word), at most `limit` of them, their
/// bytes counted from there; it returns whether they are all the rest. `join` is that of
/// MergeEngine::merge(). `emit(tokens)` takes a span of Symbols. `restart()` takes back all that
/// was emitted; the next fill() is a first one again. `window` and `longest` are for tests: powers
/// of two, in symbols.
template <class Fill, class Join, class Emit, class Restart>
void merge_word(MergeEngine& engine, Fill&& fill, Join&& join, Emit&& emit, Restart&& restart,
                size_t window = kMergeWindow, size_t longest = kMaxMergeWindow) {
  uint32_t skip = 0;
  uint32_t first_size = 0;  // bytes of the first token, as the window before has it; 0: none has
  for (;;) {
    const bool is_last = fill(skip, window);
    const std::vector<Symbol>& symbols = engine.symbols();
    const bool keeps_all = is_last || window >= longest;
    // Tokens near the end of a window are likely to differ with more text in sight.
    const uint32_t sure = keeps_all ? UINT32_MAX : symbols[window - 1 - window / 16].begin;
    engine.merge(join);
    const std::span<const Symbol> tokens(symbols);
    size_t kept = tokens.size();
    while (kept > 0 && tokens[kept - 1].end > sure) --kept;
    if ((first_size != 0 && tokens[0].end - tokens[0].begin != first_size) ||
        (kept < 2 && !keeps_all)) {
      restart();
      window *= 2;
      skip = first_size = 0;
      continue;
    }
    const size_t num_done = keeps_all ? kept : kept - 1;
    emit(tokens.first(num_done));
    if (is_last) return;
    if (num_done == kept) {
      skip = tokens.back().end;
      first_size = 0;
    } else {
      skip = tokens[num_done].begin;
      first_size = tokens[num_done].end - skip;
    }
  }
}

}  // namespace headrace::text
