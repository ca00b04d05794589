// How attention's work is cut: tiles of query rows, the keys that a row sees, and rows that are
// written to the same panel of a page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace headrace {

/// Keys of one task at most: a sequence's keys are cut at multiples of this, each segment is
/// computed from a fresh state and the states are merged in order. Whether segments run one after
/// another or on several threads is then a matter of speed only.
inline constexpr int64_t kSegmentKeys = 512;

/// Some consecutive rows of one sequence and query heads of one KV head. Its queries are numbered
/// row by row.
struct QueryTile {
  const KvSequence* sequence = nullptr;
  int64_t first_row = 0;  ///< within the sequence
  int64_t num_rows = 0;
  int64_t first_head = 0;
  int64_t num_heads = 0;
  int64_t kv_head = 0;
  int64_t first_segment = 0;  ///< segments that some row sees
  int64_t end_segment = 0;

  int64_t num_queries() const { return num_rows * num_heads; }
};

/// Keys [lo, hi) that a row at `position` sees.
struct VisibleKeys {
  int64_t lo = 0;
  int64_t hi = 0;
};

VisibleKeys visible_keys(const AttentionParams& params, const KvSequence& sequence,
                         int64_t position);

/// Tiles of at most `max_queries` queries over all rows and heads, into `tiles`. Reuses its memory.
void make_query_tiles(const AttentionParams& params, std::span<const KvSequence> sequences,
                      int64_t max_queries, std::vector<QueryTile>& tiles);

/// Consecutive rows of one sequence whose keys and values go to one panel of kKeyPanelTokens
/// tokens: the tokens of a panel share bytes that are written together.
struct PanelRows {
  const KvSequence* sequence = nullptr;
  int64_t first_row = 0;  ///< within the sequence
  int64_t num_rows = 0;
};

/// All rows, cut at panels, into `panels`. Reuses its memory.
void make_panel_rows(std::span<const KvSequence> sequences, std::vector<PanelRows>& panels);

}  // namespace headrace
