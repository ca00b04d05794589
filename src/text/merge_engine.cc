// The lists of waiting pairs of a long word; see merge_engine.h.
#include "text/merge_engine.h"

#include <functional>

namespace headrace::text {

void MergeEngine::start_long() {
  const auto n = static_cast<uint32_t>(symbols_.size());
  // Reserved at once, since growing step by step touches twice the memory.
  nodes_.clear();
  nodes_.reserve(n);
  for (uint32_t i = 0; i < n; ++i) {
    nodes_.push_back({i == 0 ? kNone : i - 1, i + 1 == n ? kNone : i + 1, kNoRank});
  }
  waiting_.clear();
  waiting_.reserve(n);
  free_ = kNone;
  ranks_.clear();
  urgent_.clear();
  num_buckets_ = 0;
  buckets_.assign(64, Bucket{});
}

void MergeEngine::finish_long() {
  size_t left = 0;
  for (uint32_t i = 0; i != kNone; i = nodes_[i].next) symbols_[left++] = symbols_[i];
  symbols_.resize(left);
  // One huge word must not pin its memory for the rest of the call.
  constexpr size_t kKeepNodes = 1 << 16;
  if (nodes_.size() > kKeepNodes) {
    symbols_.shrink_to_fit();
    nodes_ = {};
    waiting_ = {};
    gathered_ = {};
  }
}

MergeEngine::Bucket& MergeEngine::bucket(uint32_t rank) {
  const auto probe = [&]() -> Bucket& {
    const size_t mask = buckets_.size() - 1;
    size_t i = (rank * 0x9E3779B1U) & mask;
    while (buckets_[i].rank != kNoRank && buckets_[i].rank != rank) i = (i + 1) & mask;
    return buckets_[i];
  };
  Bucket* found = &probe();
  if (found->rank == kNoRank) {
    if ((num_buckets_ + 1) * 4 > buckets_.size() * 3) {
      std::vector<Bucket> old(buckets_.size() * 4);
      old.swap(buckets_);
      const uint32_t wanted = rank;
      for (const Bucket& b : old) {
        if (b.rank == kNoRank) continue;
        rank = b.rank;
        probe() = b;
      }
      rank = wanted;
      found = &probe();
    }
    found->rank = rank;
    ++num_buckets_;
  }
  return *found;
}

void MergeEngine::wait(uint32_t rank, uint32_t position) {
  uint32_t at = free_;
  if (at != kNone) {
    free_ = waiting_[at].next;
    waiting_[at] = {position, kNone};
  } else {
    at = static_cast<uint32_t>(waiting_.size());
    waiting_.push_back({position, kNone});
  }
  Bucket& list = bucket(rank);
  if (list.head == kNone) {
    list.head = at;
    ranks_.push_back(rank);
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
  } else {
    waiting_[list.tail].next = at;
  }
  list.tail = at;
  ++list.size;
}

uint32_t MergeEngine::gather() {
  std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
  const uint32_t rank = ranks_.back();
  ranks_.pop_back();
  Bucket& list = bucket(rank);
  gathered_.clear();
  gathered_.reserve(list.size);
  for (uint32_t i = list.head; i != kNone; i = waiting_[i].next) {
    gathered_.push_back(waiting_[i].position);
  }
  waiting_[list.tail].next = free_;
  free_ = list.head;
  list.head = list.tail = kNone;
  list.size = 0;
  if (!std::is_sorted(gathered_.begin(), gathered_.end())) {
    std::sort(gathered_.begin(), gathered_.end());
  }
  return rank;
}

void MergeEngine::drop_next(uint32_t at) {
  Node& node = nodes_[at];
  Node& gone = nodes_[node.next];
  symbols_[at].end = symbols_[node.next].end;
  node.next = gone.next;
  gone.rank = kNoRank;
  if (node.next != kNone) nodes_[node.next].previous = at;
}

}  // namespace headrace::text
