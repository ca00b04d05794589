// See attention.h. The keys of a sequence are cut at multiples of kSegmentKeys; each segment is
// computed from a fresh state and the states are merged in order. Whether segments run one after
// another or on several threads is then a matter of speed only.
#include "backend/cpu/attention.h"

#include <algorithm>
#include <vector>

namespace headrace {
namespace {

constexpr int64_t kSegmentKeys = 512;
// Segments whose states are kept before they are merged, for each thread: enough that waiting for
// the slowest thread is nothing, and memory that does not grow with the context.
constexpr int64_t kSegmentsAtOnce = 32;
static_assert(kSegmentKeys % kAttentionBlockKeys == 0);

/// Some consecutive rows of one sequence and the query heads of one KV head.
struct Tile {
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
struct Visible {
  int64_t lo = 0;
  int64_t hi = 0;
};

Visible visible_keys(const AttentionParams& params, const KvSequence& sequence, int64_t position) {
  Visible v;
  v.hi = params.causal ? position + 1 : sequence.first_position + sequence.num_rows;
  v.lo = params.window > 0 ? std::max<int64_t>(0, position - params.window + 1) : 0;
  return v;
}

std::vector<Tile> make_tiles(const AttentionParams& params, std::span<const KvSequence> sequences) {
  std::vector<Tile> tiles;
  const int64_t group = params.num_heads / params.num_kv_heads;
  const int64_t heads_per_tile = std::min(group, kMaxQueryRows);
  const int64_t rows_per_tile = std::max<int64_t>(1, kMaxQueryRows / heads_per_tile);
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
  return tiles;
}

/// One attention call's constants and the steps on a tile.
class Attention {
 public:
  Attention(const CpuContext& context, const Tensor& q, const KvView& view,
            const AttentionParams& params, std::span<const Tile> tiles, const Tensor& out)
      : kernels_(context.kernels), q_(q), view_(view), params_(params), out_(out) {
    for (const Tile& tile : tiles) max_queries_ = std::max(max_queries_, tile.num_queries());
  }

  int64_t head_dim() const { return params_.head_dim; }
  /// Floats of the largest tile's state: largest scores, sums, values.
  int64_t state_size() const { return max_queries_ * (2 + head_dim()); }
  int64_t scratch_size() const { return max_queries_ * kAttentionBlockKeys; }

  void run_segment(const Tile& tile, int64_t segment, float* state, float* scratch) const {
    const float* queries[kMaxQueryRows];
    int64_t lo[kMaxQueryRows];
    int64_t hi[kMaxQueryRows];
    for (int64_t i = 0; i < tile.num_queries(); ++i) {
      const int64_t row = tile.first_row + i / tile.num_heads;
      queries[i] = q_.f32(tile.sequence->first_row + row) +
                   (tile.first_head + i % tile.num_heads) * head_dim();
      const Visible v = visible_keys(params_, *tile.sequence, tile.sequence->first_position + row);
      lo[i] = v.lo;
      hi[i] = v.hi;
    }
    AttentionTile args;
    args.pages = view_.base;
    args.block_stride_bytes = view_.block_stride_bytes;
    args.block_table = tile.sequence->block_table.data();
    args.block_tokens = view_.layout.block_tokens;
    args.head_dim = head_dim();
    args.key_offset = view_.layout.key_index(tile.kv_head, 0, 0);
    args.value_offset = view_.layout.value_index(tile.kv_head, 0);
    args.f16 = view_.layout.type == KvType::f16;
    args.scale = params_.scale;
    args.soft_cap = params_.soft_cap;
    args.num_rows = tile.num_queries();
    args.q = queries;
    args.lo = lo;
    args.hi = hi;
    args.begin = segment * kSegmentKeys;
    args.end = args.begin + kSegmentKeys;
    args.max = state;
    args.sum = state + max_queries_;
    args.out = state + 2 * max_queries_;
    args.scratch = scratch;
    kernels_.attend(args);
  }

  void merge(const Tile& tile, float* total, const float* part) const {
    for (int64_t i = 0; i < tile.num_queries(); ++i) {
      const int64_t values = 2 * max_queries_ + i * head_dim();
      kernels_.attend_merge(total + i, total + max_queries_ + i, total + values, part[i],
                            part[max_queries_ + i], part + values, head_dim());
    }
  }

  void finish(const Tile& tile, const float* state) const {
    for (int64_t i = 0; i < tile.num_queries(); ++i) {
      float* out = out_.f32(tile.sequence->first_row + tile.first_row + i / tile.num_heads) +
                   (tile.first_head + i % tile.num_heads) * head_dim();
      kernels_.scale(state + 2 * max_queries_ + i * head_dim(), 1.0F / state[max_queries_ + i],
                     head_dim(), out);
    }
  }

 private:
  const KernelTable& kernels_;
  const Tensor& q_;
  const KvView& view_;
  const AttentionParams& params_;
  const Tensor& out_;
  int64_t max_queries_ = 0;
};

/// Many tiles: a task is a tile with all its segments.
void run_by_tiles(CpuContext& context, const Attention& attention, std::span<const Tile> tiles) {
  const int64_t per_worker = 2 * attention.state_size() + attention.scratch_size();
  float* memory = context.scratch(static_cast<size_t>(per_worker * context.pool.num_threads()));
  context.pool.parallel_for(static_cast<int64_t>(tiles.size()), [&](int64_t i, int worker) {
    const Tile& tile = tiles[static_cast<size_t>(i)];
    float* total = memory + worker * per_worker;
    float* part = total + attention.state_size();
    float* scratch = part + attention.state_size();
    attention.run_segment(tile, tile.first_segment, total, scratch);
    for (int64_t segment = tile.first_segment + 1; segment < tile.end_segment; ++segment) {
      attention.run_segment(tile, segment, part, scratch);
      attention.merge(tile, total, part);
    }
    attention.finish(tile, total);
  });
}

/// Few tiles with long contexts: a task is one segment of one tile. Some tasks run at once, then
/// their states are merged in order: one tile's total is at work at a time.
void run_by_segments(CpuContext& context, const Attention& attention, std::span<const Tile> tiles) {
  std::vector<int64_t> first_task(tiles.size() + 1, 0);
  for (size_t i = 0; i < tiles.size(); ++i) {
    first_task[i + 1] = first_task[i] + tiles[i].end_segment - tiles[i].first_segment;
  }
  const int64_t num_tasks = first_task.back();
  const auto tile_of = [&](int64_t task) {
    return static_cast<size_t>(std::upper_bound(first_task.begin(), first_task.end(), task) -
                               first_task.begin() - 1);
  };
  const int64_t num_threads = context.pool.num_threads();
  const int64_t at_once = std::min(num_tasks, kSegmentsAtOnce * num_threads);
  const int64_t state_size = attention.state_size();
  float* total = context.scratch(
      static_cast<size_t>((1 + at_once) * state_size + num_threads * attention.scratch_size()));
  float* states = total + state_size;
  float* scratch = states + at_once * state_size;
  for (int64_t begin = 0; begin < num_tasks; begin += at_once) {
    const int64_t count = std::min(at_once, num_tasks - begin);
    context.pool.parallel_for(count, [&](int64_t i, int worker) {
      const size_t tile = tile_of(begin + i);
      attention.run_segment(tiles[tile], tiles[tile].first_segment + begin + i - first_task[tile],
                            states + i * state_size, scratch + worker * attention.scratch_size());
    });
    for (int64_t i = 0; i < count; ++i) {
      const size_t tile = tile_of(begin + i);
      const float* state = states + i * state_size;
      if (begin + i == first_task[tile]) {
        std::copy_n(state, state_size, total);
      } else {
        attention.merge(tiles[tile], total, state);
      }
      if (begin + i + 1 == first_task[tile + 1]) attention.finish(tiles[tile], total);
    }
  }
}

}  // namespace

void cpu_kv_write(CpuContext& context, const Tensor& k, const Tensor& v, const KvView& view,
                  std::span<const KvSequence> sequences) {
  const KvPageLayout& layout = view.layout;
  HEADRACE_CHECK_EQ(k.cols, layout.num_kv_heads * layout.head_dim);
  HEADRACE_CHECK_EQ(v.cols, k.cols);
  std::vector<uint16_t> halves(static_cast<size_t>(2 * layout.head_dim));
  for (const KvSequence& sequence : sequences) {
    for (int64_t i = 0; i < sequence.num_rows; ++i) {
      const int64_t position = sequence.first_position + i;
      const int64_t block_index = position / layout.block_tokens;
      HEADRACE_CHECK_LT(block_index, static_cast<int64_t>(sequence.block_table.size()));
      const int32_t block = sequence.block_table[static_cast<size_t>(block_index)];
      HEADRACE_CHECK_GE(block, 0);
      const int64_t slot = position % layout.block_tokens;
      for (int64_t head = 0; head < layout.num_kv_heads; ++head) {
        const float* key = k.f32(sequence.first_row + i) + head * layout.head_dim;
        const float* value = v.f32(sequence.first_row + i) + head * layout.head_dim;
        const int64_t key_at = layout.key_index(head, slot, 0);
        const int64_t value_at = layout.value_index(head, slot);
        if (layout.type == KvType::f32) {
          auto* page = reinterpret_cast<float*>(view.page(block));
          for (int64_t d = 0; d < layout.head_dim; ++d) {
            page[key_at + d * kKeyPanelTokens] = key[d];
            page[value_at + d] = value[d];
          }
        } else {
          auto* page = reinterpret_cast<uint16_t*>(view.page(block));
          context.kernels.to_f16(key, layout.head_dim, halves.data());
          context.kernels.to_f16(value, layout.head_dim, page + value_at);
          for (int64_t d = 0; d < layout.head_dim; ++d) {
            page[key_at + d * kKeyPanelTokens] = halves[static_cast<size_t>(d)];
          }
        }
      }
    }
  }
}

void cpu_attention(CpuContext& context, const Tensor& q, const KvView& view,
                   const AttentionParams& params, std::span<const KvSequence> sequences,
                   const Tensor& out) {
  HEADRACE_CHECK(params.num_kv_heads > 0 && params.num_heads % params.num_kv_heads == 0);
  HEADRACE_CHECK_EQ(q.cols, params.num_heads * params.head_dim);
  HEADRACE_CHECK_EQ(out.cols, q.cols);
  HEADRACE_CHECK_EQ(view.layout.head_dim, params.head_dim);
  HEADRACE_CHECK_EQ(view.layout.num_kv_heads, params.num_kv_heads);
  for (const KvSequence& sequence : sequences) {
    HEADRACE_CHECK_LE(sequence.first_position + sequence.num_rows,
                      static_cast<int64_t>(sequence.block_table.size()) * view.layout.block_tokens);
  }
  const std::vector<Tile> tiles = make_tiles(params, sequences);
  const Attention attention(context, q, view, params, tiles, out);
  if (static_cast<int64_t>(tiles.size()) < 4 * context.pool.num_threads()) {
    run_by_segments(context, attention, tiles);
  } else {
    run_by_tiles(context, attention, tiles);
  }
}

}  // namespace headrace
