// See headrace/stats.h.
#include "headrace/stats.h"

namespace headrace {

std::string_view memory_rung_name(MemoryRung rung) {
  switch (rung) {
    case MemoryRung::evict_prefixes:
      return "evict_prefixes";
    case MemoryRung::drop_caches:
      return "drop_caches";
    case MemoryRung::stop_admitting:
      return "stop_admitting";
    case MemoryRung::shrink_chunks:
      return "shrink_chunks";
    case MemoryRung::lower_batch:
      return "lower_batch";
    case MemoryRung::preempt:
      return "preempt";
    case MemoryRung::lighter_model:
      return "lighter_model";
    case MemoryRung::fail_request:
      return "fail_request";
  }
  return "unknown";
}

double EngineStats::token_slot_utilisation() const {
  double live = 0;
  double held = 0;
  for (const KvGroupStats& group : groups) {
    if (group.block_tokens == 0) continue;
    const auto slot_bytes =
        static_cast<double>(group.block_bytes) / static_cast<double>(group.block_tokens);
    live += static_cast<double>(group.live_tokens) * slot_bytes;
    held += static_cast<double>(group.num_held * group.block_tokens) * slot_bytes;
  }
  return held > 0 ? live / held : 1.0;
}

double EngineStats::kv_usage() const {
  double held = 0;
  double all = 0;
  for (const KvGroupStats& group : groups) {
    held += static_cast<double>(group.num_held) * static_cast<double>(group.block_bytes);
    all += static_cast<double>(group.num_blocks) * static_cast<double>(group.block_bytes);
  }
  return all > 0 ? held / all : 0.0;
}

}  // namespace headrace
