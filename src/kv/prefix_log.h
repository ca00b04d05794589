// What changed in the prefix cache, kept for who wants to know. Owns the events until they are
// taken. Must not know who that is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/kv_event.h"
#include "kv/block_hash.h"

namespace headrace {

class PrefixLog {
 public:
  /// Keeps up to `max_events`; where more come before they are taken, or memory runs out, all are
  /// dropped and a `cleared` tells so.
  explicit PrefixLog(size_t max_events = 65536) : max_events_(max_events) {}

  void stored(int32_t group, const BlockHash& hash, const BlockHash& parent,
              std::span<const TokenId> tokens) noexcept;
  void removed(int32_t group, const BlockHash& hash, const BlockHash& parent) noexcept;
  void cleared() noexcept;

  /// Moves what there is behind `out`. Where that throws (memory), nothing is lost.
  void move_to(std::vector<KvEvent>& out);
  bool is_empty() const { return events_.empty() && !has_lost_; }

 private:
  void add(KvEvent::Kind kind, int32_t group, const BlockHash& hash, const BlockHash& parent,
           std::span<const TokenId> tokens) noexcept;

  const size_t max_events_;
  uint64_t next_number_ = 0;
  bool has_lost_ = false;
  std::vector<KvEvent> events_;
};

}  // namespace headrace
