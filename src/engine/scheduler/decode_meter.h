// What steps of decoding read and how long they took: in all, and of late. Must not know the
// scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/scheduler/batch.h"
#include "headrace/stats.h"
#include "kv/cache_group.h"

namespace headrace {

/// The work of the last seconds, in slots of one. Takes no memory.
class DecodeWindow {
 public:
  static constexpr int64_t kSeconds = 10;

  /// Work that ended at `now_ns`, which never goes back.
  void add(int64_t now_ns, const DecodeWork& work);
  /// Of the second of `now_ns` and those before it, kSeconds in all.
  DecodeWork recent(int64_t now_ns) const;

 private:
  struct Slot {
    int64_t second = -1;
    DecodeWork work;
  };
  std::array<Slot, kSeconds> slots_;  ///< by second modulo their number
};

class DecodeMeter {
 public:
  /// `block_bytes`: of a block of each group; empty: bytes are not counted. Throws std::bad_alloc.
  DecodeMeter(std::span<const CacheGeometry> geometries, std::span<const uint64_t> block_bytes);

  /// A step that was computed; nothing where it is none of decoding.
  void note(const Batch& batch, int64_t begin_ns, int64_t end_ns);

  const DecodeWork& total() const { return total_; }
  const DecodeWindow& window() const { return window_; }

 private:
  struct Group {
    int64_t most_keys = 0;  ///< of earlier steps that a row reads
    uint64_t block_bytes = 0;
    int64_t block_tokens = 1;
  };
  int64_t kv_bytes_of(const Batch& batch) const;

  std::vector<Group> groups_;
  DecodeWork total_;
  DecodeWindow window_;
};

}  // namespace headrace
