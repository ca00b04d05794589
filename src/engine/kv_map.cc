// See kv_map.h.
#include "engine/kv_map.h"

#include <algorithm>
#include <charconv>
#include <new>

namespace headrace {
namespace {

char state_of(const CacheGroup& group, int32_t block) {
  if (group.pool().references(block) > 0) return 'h';
  return group.prefixes().contains(block) ? 'c' : 'f';
}

void append_run(char state, int32_t length, std::string& out) {
  char digits[12];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), length).ptr;
  out += state;
  out.append(digits, end);
}

}  // namespace

void draw_blocks(const CacheGroup& group, std::string& out) {
  out.clear();
  const int32_t num_blocks = group.pool().num_blocks();
  int32_t first = 0;
  for (int32_t block = 0; block < num_blocks; ++block) {
    const char state = state_of(group, block);
    if (block + 1 < num_blocks && state_of(group, block + 1) == state) continue;
    append_run(state, block + 1 - first, out);
    first = block + 1;
  }
}

bool KvMap::ask(int64_t now_ns) noexcept {
  asked_ns_.store(now_ns, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  return is_old(now_ns);
}

std::vector<std::string> KvMap::read(int64_t now_ns, std::chrono::nanoseconds patience) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);  // no sum overflows
  std::unique_lock lock(mutex_);
  drawn_.wait_for(lock, std::min(patience, kLongest), [&] { return !is_old(now_ns); });
  return picture_;
}

void KvMap::update(const KvCache& cache, const Clock& clock) noexcept {
  const int64_t asked_ns = asked_ns_.load(std::memory_order_relaxed);
  if (has_drawn_ && asked_ns == kNotYet) return;
  const int64_t start_ns = clock.now_ns();
  if (has_drawn_ && (start_ns < next_ns_ || start_ns - asked_ns > kLatelyNs)) return;
  try {
    sketch_.resize(cache.groups().size());
    for (size_t i = 0; i < sketch_.size(); ++i) draw_blocks(cache.groups()[i], sketch_[i]);
  } catch (const std::bad_alloc&) {
    return;  // the next step draws it
  }
  has_drawn_ = true;
  constexpr int64_t kShare = 200;
  const int64_t end_ns = clock.now_ns();
  next_ns_ = end_ns + std::max(kOldNs, kShare * (end_ns - start_ns));
  {
    const std::lock_guard lock(mutex_);
    picture_.swap(sketch_);
    drawn_ns_ = end_ns;
  }
  drawn_.notify_all();
}

}  // namespace headrace
