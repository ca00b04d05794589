// See prefix_log.h.
#include "kv/prefix_log.h"

#include <cstring>
#include <new>
#include <utility>

namespace headrace {
namespace {

KvEvent::Hash bytes_of(const BlockHash& hash) {
  KvEvent::Hash out;
  static_assert(sizeof(out) == sizeof(hash));
  std::memcpy(out.data(), &hash, sizeof(out));
  return out;
}

}  // namespace

void PrefixLog::stored(int32_t group, const BlockHash& hash, const BlockHash& parent,
                       std::span<const TokenId> tokens) noexcept {
  add(KvEvent::Kind::stored, group, hash, parent, tokens);
}

void PrefixLog::removed(int32_t group, const BlockHash& hash, const BlockHash& parent) noexcept {
  add(KvEvent::Kind::removed, group, hash, parent, {});
}

void PrefixLog::cleared() noexcept {
  const std::lock_guard lock(mutex_);
  drop_all();
}

// Only the last `cleared` is told: it says what those before it do.
void PrefixLog::drop_all() noexcept {
  events_.clear();
  has_lost_ = true;
  lost_number_ = next_number_++;
}

void PrefixLog::add(KvEvent::Kind kind, int32_t group, const BlockHash& hash,
                    const BlockHash& parent, std::span<const TokenId> tokens) noexcept {
  const std::lock_guard lock(mutex_);
  if (events_.size() >= max_events_) drop_all();
  try {
    KvEvent event{.kind = kind,
                  .number = next_number_,
                  .group = group,
                  .hash = bytes_of(hash),
                  .parent = bytes_of(parent),
                  .tokens = {tokens.begin(), tokens.end()}};
    events_.push_back(std::move(event));
    ++next_number_;
  } catch (const std::bad_alloc&) {
    drop_all();
  }
}

std::vector<KvEvent> PrefixLog::take() {
  const std::lock_guard lock(mutex_);
  if (has_lost_) {
    KvEvent lost;
    lost.kind = KvEvent::Kind::cleared;
    lost.number = lost_number_;
    events_.insert(events_.begin(), std::move(lost));
    has_lost_ = false;
  }
  return std::exchange(events_, {});
}

}  // namespace headrace
