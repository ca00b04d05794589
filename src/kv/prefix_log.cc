// See prefix_log.h.
#include "kv/prefix_log.h"

#include <cstring>
#include <iterator>
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
  events_.clear();
  has_lost_ = true;
}

void PrefixLog::add(KvEvent::Kind kind, int32_t group, const BlockHash& hash,
                    const BlockHash& parent, std::span<const TokenId> tokens) noexcept {
  if (events_.size() >= max_events_) cleared();
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
    cleared();
  }
}

void PrefixLog::move_to(std::vector<KvEvent>& out) {
  out.reserve(out.size() + events_.size() + 1);
  if (std::exchange(has_lost_, false)) {
    // Its number is that of the first event after it: those lost have none.
    KvEvent lost;
    lost.kind = KvEvent::Kind::cleared;
    lost.number = events_.empty() ? next_number_ : events_.front().number;
    out.push_back(std::move(lost));
  }
  out.insert(out.end(), std::make_move_iterator(events_.begin()),
             std::make_move_iterator(events_.end()));
  events_.clear();
}

}  // namespace headrace
