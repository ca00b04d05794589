// Joins neighbouring symbols of one word, best rank first and leftmost among equals, until no pair
// can be joined: the core of byte-pair encoding. Owns its scratch memory, which is reused from
// word to word. Must not know vocabularies: a callable says which pairs join.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace headrace::text {

inline constexpr uint32_t kNoRank = UINT32_MAX;

/// What joining two symbols gives: a lower rank is joined earlier.
struct Joined {
  uint32_t rank = kNoRank;  ///< kNoRank: the pair does not join
  int32_t id = -1;
};

/// Part of a word: bytes [begin, end) of it, and the token they are (-1: none).
struct Symbol {
  int32_t id;
  uint32_t begin;
  uint32_t end;
};

class MergeEngine {
 public:
  /// The symbols of the next word; fill it, then call merge(). Holds the result afterwards.
  std::vector<Symbol>& symbols() { return symbols_; }

  /// `join(left, right)` takes two neighbouring Symbols and returns a Joined. Time is
  /// O(n log n) for n symbols, and nearly linear on long words: pairs wait in one list per rank,
  /// so that memory is walked in order.
  template <class Join>
  void merge(Join&& join) {
    if (symbols_.size() <= kShort) {
      merge_short(join);
    } else {
      merge_long(join);
    }
  }

 private:
  static constexpr size_t kShort = 32;
  static constexpr uint32_t kNone = UINT32_MAX;

  // The symbol of the same number, in the list of those that are left of a long word. `rank` is
  // that of the pair with the next one.
  struct Node {
    uint32_t previous;
    uint32_t next;
    uint32_t rank;
  };
  // A position waiting in the list of its rank.
  struct Waiting {
    uint32_t position;
    uint32_t next;
  };
  // The positions whose pair has one rank, in order of arrival.
  struct Bucket {
    uint32_t rank = kNoRank;
    uint32_t head = kNone;
    uint32_t tail = kNone;
    uint32_t size = 0;
  };

  template <class Join>
  void merge_short(Join& join) {
    uint32_t ranks[kShort];
    int32_t ids[kShort];
    size_t n = symbols_.size();
    if (n < 2) return;
    Symbol* s = symbols_.data();
    const auto rate = [&](size_t i) {
      const Joined joined = join(s[i], s[i + 1]);
      ranks[i] = joined.rank;
      ids[i] = joined.id;
    };
    for (size_t i = 0; i + 1 < n; ++i) rate(i);
    while (n > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < n; ++i) {
        if (ranks[i] < ranks[best]) best = i;
      }
      if (ranks[best] == kNoRank) break;
      s[best].id = ids[best];
      s[best].end = s[best + 1].end;
      for (size_t i = best + 1; i + 1 < n; ++i) {
        s[i] = s[i + 1];
        ranks[i - 1] = ranks[i];
        ids[i - 1] = ids[i];
      }
      --n;
      if (best + 1 < n) {
        rate(best);
      }
      if (best > 0) rate(best - 1);
    }
    symbols_.resize(n);
  }

  template <class Join>
  void merge_long(Join& join) {
    start_long();
    const auto rate = [&](uint32_t i) -> uint32_t {
      Node& node = nodes_[i];
      node.rank = node.next == kNone ? kNoRank : join(symbols_[i], symbols_[node.next]).rank;
      return node.rank;
    };
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (const uint32_t rank = rate(i); rank != kNoRank) wait(rank, i);
    }
    while (!ranks_.empty()) {
      const uint32_t rank = gather();
      size_t cursor = 0;
      // `urgent_` holds pairs that arose meanwhile and precede what is left of this rank.
      while (cursor < gathered_.size() || !urgent_.empty()) {
        uint64_t now = cursor < gathered_.size() ? key(rank, gathered_[cursor]) : UINT64_MAX;
        if (!urgent_.empty() && urgent_.front() <= now) {
          now = urgent_.front();
          std::pop_heap(urgent_.begin(), urgent_.end(), std::greater<>());
          urgent_.pop_back();
        } else {
          ++cursor;
        }
        const auto at = static_cast<uint32_t>(now);
        const auto at_rank = static_cast<uint32_t>(now >> 32);
        Node& node = nodes_[at];
        if (node.rank != at_rank) continue;  // joined otherwise in the meantime
        symbols_[at].id = join(symbols_[at], symbols_[node.next]).id;
        drop_next(at);
        const auto renew = [&](uint32_t i) {
          const uint32_t fresh = rate(i);
          if (fresh == kNoRank) return;
          if (fresh > rank) return wait(fresh, i);
          urgent_.push_back(key(fresh, i));
          std::push_heap(urgent_.begin(), urgent_.end(), std::greater<>());
        };
        renew(at);
        if (node.previous != kNone) renew(node.previous);
      }
    }
    finish_long();
  }

  static uint64_t key(uint32_t rank, uint32_t position) {
    return (uint64_t{rank} << 32) | position;
  }

  void start_long();
  void finish_long();
  void wait(uint32_t rank, uint32_t position);
  uint32_t gather();
  void drop_next(uint32_t at);
  Bucket& bucket(uint32_t rank);

  std::vector<Symbol> symbols_;
  std::vector<Node> nodes_;
  std::vector<Waiting> waiting_;
  uint32_t free_ = kNone;        // of waiting_
  std::vector<Bucket> buckets_;  // open addressing by rank; never more than 3/4 full
  size_t num_buckets_ = 0;
  std::vector<uint32_t> ranks_;     // a heap, smallest first: the ranks with a non-empty bucket
  std::vector<uint32_t> gathered_;  // positions of the rank being joined, ascending
  std::vector<uint64_t> urgent_;    // a heap of key()s, smallest first
};

}  // namespace headrace::text
