// A picture of the KV blocks, drawn now and then while somebody looks. Must not know engines or
// requests.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kv/kv_cache.h"

namespace headrace {

/// The states of a group's blocks in block order, run after run: 'f' free, 'c' cached (a known
/// prefix that nobody holds), 'h' held; "f120h3c16". Linear in the number of blocks.
void draw_blocks(const CacheGroup& group, std::string& out);

/// The newest picture. Who draws and who looks are different threads; neither waits for the other
/// longer than it takes to copy the texts.
class KvMap {
 public:
  /// Somebody looks at time `now_ns`. Whether the picture is old, so that update() should be called
  /// soon.
  bool ask(int64_t now_ns) noexcept;
  /// The newest picture, by group. Waits for one that is not old at time `now_ns`, at most
  /// `patience`. Throws std::bad_alloc.
  std::vector<std::string> read(int64_t now_ns, std::chrono::nanoseconds patience);

  /// From the thread that owns the cache. Draws if somebody has looked lately, four times a second
  /// at most, and no more often than takes a two hundredth of the time. The first call always does.
  void update(const KvCache& cache, const Clock& clock) noexcept;

 private:
  static constexpr int64_t kOldNs = 250'000'000;
  static constexpr int64_t kLatelyNs = 5'000'000'000;
  static constexpr int64_t kNotYet = std::numeric_limits<int64_t>::min() / 2;

  bool is_old(int64_t now_ns) const { return now_ns - drawn_ns_ >= kOldNs; }

  std::atomic<int64_t> asked_ns_ = kNotYet;
  // Of the thread that draws.
  int64_t next_ns_ = kNotYet;
  bool has_drawn_ = false;
  std::vector<std::string> sketch_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable drawn_;
  int64_t drawn_ns_ = kNotYet;
  std::vector<std::string> picture_;
};

}  // namespace headrace
