// What changed in the prefix cache, kept for who wants to know. Owns the events until they are
// taken. Must not know who that is. Thread-safe: who takes them need not be who changes the cache.
#pragma once

#include <cstdint>
#include <mutex>
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

  /// What there is, oldest first. Throws std::bad_alloc; then nothing is lost.
  std::vector<KvEvent> take();

 private:
  void add(KvEvent::Kind kind, int32_t group, const BlockHash& hash, const BlockHash& parent,
           std::span<const TokenId> tokens) noexcept;
  void drop_all() noexcept;

  const size_t max_events_;
  std::mutex mutex_;  // guards what follows
  uint64_t next_number_ = 0;
  bool has_lost_ = false;
  uint64_t lost_number_ = 0;  // of the `cleared` that tells it
  std::vector<KvEvent> events_;
};

}  // namespace headrace
