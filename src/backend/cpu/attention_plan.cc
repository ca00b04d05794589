// See attention_plan.h.
#include "backend/cpu/attention_plan.h"

#include <algorithm>

#include "base/checked.h"

namespace headrace {

VisibleKeys visible_keys(const AttentionParams& params, const KvSequence& sequence,
                         int64_t position) {
  VisibleKeys keys;
  keys.hi = params.causal ? position + 1 : sequence.first_position + sequence.num_rows;
  keys.lo = params.window > 0 ? std::max<int64_t>(0, position - params.window + 1) : 0;
  return keys;
}

void make_query_tiles(const AttentionParams& params, std::span<const KvSequence> sequences,
                      int64_t max_queries, std::vector<QueryTile>& tiles) {
  tiles.clear();
  const int64_t group = params.num_heads / params.num_kv_heads;
  const int64_t heads_per_tile = std::min(group, max_queries);
  const int64_t rows_per_tile = std::max<int64_t>(1, max_queries / heads_per_tile);
  for (const KvSequence& sequence : sequences) {
    for (int64_t row = 0; row < sequence.num_rows; row += rows_per_tile) {
      const int64_t num_rows = std::min(rows_per_tile, sequence.num_rows - row);
      const int64_t position = sequence.first_position + row;
      const int64_t lo = visible_keys(params, sequence, position).lo;
      const int64_t hi = visible_keys(params, sequence, position + num_rows - 1).hi;
      for (int64_t head = 0; head < params.num_heads;) {
        const int64_t kv_head = head / group;
        const int64_t end = std::min(head + heads_per_tile, (kv_head + 1) * group);
        tiles.push_back({&sequence, row, num_rows, head, end - head, kv_head, lo / kSegmentKeys,
                         ceil_div(hi, kSegmentKeys)});
        head = end;
      }
    }
  }
}

void make_panel_rows(std::span<const KvSequence> sequences, std::vector<PanelRows>& panels) {
  panels.clear();
  for (const KvSequence& sequence : sequences) {
    for (int64_t row = 0; row < sequence.num_rows;) {
      const int64_t slot = (sequence.first_position + row) % kKeyPanelTokens;
      const int64_t num_rows = std::min(kKeyPanelTokens - slot, sequence.num_rows - row);
      panels.push_back({&sequence, row, num_rows});
      row += num_rows;
    }
  }
}

}  // namespace headrace
