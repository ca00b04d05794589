// See attention.h, and attention_plan.h for how the work is cut.
#include "backend/cpu/attention.h"

#include <algorithm>

#include "backend/cpu/attention_plan.h"
#include "backend/cpu/q8_shape.h"

namespace headrace {
namespace {

// Segments whose states are kept before they are merged, for each thread: enough that waiting for
// the slowest thread is nothing, and memory that does not grow with the context.
constexpr int64_t kSegmentsAtOnce = 32;
static_assert(kSegmentKeys % kAttentionBlockKeys == 0 && kSegmentKeys % kQ8BlockKeys == 0);

/// Floats of Q8AttentionTile::scratch, see Q8Scratch in body/attention_q8.inl.
int64_t q8_scratch_floats(const Q8Shape& shape) {
  constexpr int64_t kGroupRows = 16;
  return (shape.chunks + 2) * kQ8BlockKeys + (kMaxQueryRows + kGroupRows) * 16 +
         kGroupRows * kQ8BlockKeys * shape.chunks + kGroupRows * kQ8BlockKeys / 2 +
         kGroupRows * shape.dim + 3 * kGroupRows;
}

/// One attention call's constants and the steps on a tile.
class Attention {
 public:
  Attention(const CpuContext& context, const Tensor& q, const KvView& view,
            const AttentionParams& params, std::span<const QueryTile> tiles, const Tensor& out)
      : kernels_(context.kernels),
        q_(q),
        view_(view),
        params_(params),
        out_(out),
        is_q8_(is_quantized(view.layout.type)),
        shape_(q8_shape(view.layout)) {
    for (const QueryTile& tile : tiles) max_queries_ = std::max(max_queries_, tile.num_queries());
    max_rows_ = in_lines(max_queries_);
    dim_ = is_q8_ ? shape_.dim : params.head_dim;
  }

  /// Floats of the largest tile's state: largest scores, sums, values.
  int64_t state_size() const { return in_lines(2 * max_rows_ + max_queries_ * dim_); }
  /// Floats of the largest tile's queries as kernels want them.
  int64_t queries_size() const {
    if (!is_q8_) return 0;
    return in_lines(max_rows_ * (shape_.chunks + dim_ / 2));
  }
  int64_t scratch_size() const {
    return in_lines(is_q8_ ? q8_scratch_floats(shape_) : max_queries_ * kAttentionBlockKeys);
  }

  /// Prepares a tile's queries in `memory`.
  void prepare(const QueryTile& tile, float* memory) const {
    if (!is_q8_) return;
    const float* rows[kMaxQueryRows];
    find_queries(tile, rows);
    kernels_.q8->quantize_queries(rows, tile.num_queries(), params_.scale, queries_in(memory),
                                  shape_);
  }

  /// Computes a segment of a tile from its prepared queries.
  void run_segment(const QueryTile& tile, int64_t segment, float* queries, float* state,
                   float* scratch) const {
    int64_t lo[kMaxQueryRows];
    int64_t hi[kMaxQueryRows];
    for (int64_t i = 0; i < tile.num_queries(); ++i) {
      const int64_t row = tile.first_row + i / tile.num_heads;
      const VisibleKeys v =
          visible_keys(params_, *tile.sequence, tile.sequence->first_position + row);
      lo[i] = v.lo;
      hi[i] = v.hi;
    }
    if (is_q8_) {
      Q8AttentionTile args;
      args.pages = view_.base + view_.layout.panel_at(tile.kv_head, 0);
      args.panel_bytes = view_.layout.panel().bytes();
      args.shape = shape_;
      args.queries = queries_in(queries);
      fill(tile, segment, lo, hi, state, scratch, args);
      kernels_.q8->attend(args);
    } else {
      const float* rows[kMaxQueryRows];
      find_queries(tile, rows);
      AttentionTile args;
      args.pages = view_.base;
      args.head_dim = params_.head_dim;
      args.key_offset = view_.layout.key_index(tile.kv_head, 0, 0);
      args.value_offset = view_.layout.value_index(tile.kv_head, 0);
      args.f16 = view_.layout.type == KvType::f16;
      args.scale = params_.scale;
      args.q = rows;
      fill(tile, segment, lo, hi, state, scratch, args);
      kernels_.attend(args);
    }
  }

  void merge(const QueryTile& tile, float* total, const float* part) const {
    for (int64_t i = 0; i < tile.num_queries(); ++i) {
      const int64_t values = 2 * max_rows_ + i * dim_;
      kernels_.attend_merge(total + i, total + max_rows_ + i, total + values, part[i],
                            part[max_rows_ + i], part + values, dim_);
    }
  }

  void finish(const QueryTile& tile, float* state) const {
    for (int64_t i = 0; i < tile.num_queries(); ++i) {
      float* out = out_.f32(tile.sequence->first_row + tile.first_row + i / tile.num_heads) +
                   (tile.first_head + i % tile.num_heads) * params_.head_dim;
      float* values = state + 2 * max_rows_ + i * dim_;
      const float factor = 1.0F / state[max_rows_ + i];
      if (is_q8_) {
        kernels_.q8->finish_row(values, factor, out, shape_);
      } else {
        kernels_.scale(values, factor, params_.head_dim, out);
      }
    }
  }

 private:
  void find_queries(const QueryTile& tile, const float** rows) const {
    for (int64_t i = 0; i < tile.num_queries(); ++i) {
      const int64_t row = tile.sequence->first_row + tile.first_row + i / tile.num_heads;
      rows[i] = q_.f32(row) + (tile.first_head + i % tile.num_heads) * params_.head_dim;
    }
  }

  Q8Queries queries_in(float* memory) const {
    Q8Queries queries;
    queries.factors = memory;
    queries.codes = reinterpret_cast<int16_t*>(memory + max_rows_ * shape_.chunks);
    return queries;
  }

  /// What both kinds of tiles have.
  template <class Args>
  void fill(const QueryTile& tile, int64_t segment, const int64_t* lo, const int64_t* hi,
            float* state, float* scratch, Args& args) const {
    args.block_stride_bytes = view_.block_stride_bytes;
    args.block_table = tile.sequence->block_table.data();
    args.block_tokens = view_.layout.block_tokens;
    args.soft_cap = params_.soft_cap;
    args.num_rows = tile.num_queries();
    args.lo = lo;
    args.hi = hi;
    args.begin = segment * kSegmentKeys;
    args.end = args.begin + kSegmentKeys;
    args.max = state;
    args.sum = state + max_rows_;
    args.out = state + 2 * max_rows_;
    args.scratch = scratch;
  }

  const KernelTable& kernels_;
  const Tensor& q_;
  const KvView& view_;
  const AttentionParams& params_;
  const Tensor& out_;
  bool is_q8_;
  Q8Shape shape_;
  int64_t max_queries_ = 0;
  int64_t max_rows_ = 0;  ///< max_queries_ rounded up to a multiple of 16
  int64_t dim_ = 0;       ///< elements of a row of a state
};

/// Many tiles: a task is a tile with all its segments.
void run_by_tiles(CpuContext& context, const Attention& attention,
                  std::span<const QueryTile> tiles) {
  const int64_t per_worker =
      2 * attention.state_size() + attention.queries_size() + attention.scratch_size();
  float* memory = context.scratch(static_cast<size_t>(per_worker * context.pool.num_threads()));
  const auto num_tiles = static_cast<int64_t>(tiles.size());
  context.pool.parallel_for(num_tiles, [&](int64_t i, int worker) {
    // In their order, so that a thread reads and writes about the rows that it has in products.
    const QueryTile& tile = tiles[static_cast<size_t>(i)];
    float* total = memory + worker * per_worker;
    float* part = total + attention.state_size();
    float* queries = part + attention.state_size();
    float* scratch = queries + attention.queries_size();
    attention.prepare(tile, queries);
    attention.run_segment(tile, tile.first_segment, queries, total, scratch);
    for (int64_t segment = tile.first_segment + 1; segment < tile.end_segment; ++segment) {
      attention.run_segment(tile, segment, queries, part, scratch);
      attention.merge(tile, total, part);
    }
    attention.finish(tile, total);
  });
}

/// Few tiles with long contexts: a task is one segment of one tile. Some tasks run at once, then
/// their states are merged in order: one tile's total is at work at a time.
void run_by_segments(CpuContext& context, const Attention& attention,
                     std::span<const QueryTile> tiles) {
  // Of the tile of a task: its first task.
  struct Place {
    size_t tile = 0;
    int64_t first_task = 0;
  };
  const auto place_of = [&](int64_t task) {
    Place place;
    for (;; ++place.tile) {
      const int64_t next =
          place.first_task + tiles[place.tile].end_segment - tiles[place.tile].first_segment;
      if (task < next) return place;
      place.first_task = next;
    }
  };
  int64_t num_tasks = 0;
  for (const QueryTile& tile : tiles) num_tasks += tile.end_segment - tile.first_segment;
  const int64_t num_threads = context.pool.num_threads();
  // Not of num_tasks: the memory is the same for every length of the context.
  const int64_t at_once = kSegmentsAtOnce * num_threads;
  const int64_t state_size = attention.state_size();
  const int64_t per_worker = attention.queries_size() + attention.scratch_size();
  float* total =
      context.scratch(static_cast<size_t>((1 + at_once) * state_size + num_threads * per_worker));
  float* states = total + state_size;
  float* memory = states + at_once * state_size;
  for (int64_t begin = 0; begin < num_tasks; begin += at_once) {
    const int64_t count = std::min(at_once, num_tasks - begin);
    context.pool.parallel_for(count, [&](int64_t i, int worker) {
      const Place place = place_of(begin + i);
      const QueryTile& tile = tiles[place.tile];
      float* queries = memory + worker * per_worker;
      attention.prepare(tile, queries);
      attention.run_segment(tile, tile.first_segment + begin + i - place.first_task, queries,
                            states + i * state_size, queries + attention.queries_size());
    });
    for (int64_t i = 0; i < count; ++i) {
      const Place place = place_of(begin + i);
      const QueryTile& tile = tiles[place.tile];
      const float* state = states + i * state_size;
      const int64_t segment = begin + i - place.first_task;
      if (segment == 0) {
        std::copy_n(state, state_size, total);
      } else {
        attention.merge(tile, total, state);
      }
      if (segment + 1 == tile.end_segment - tile.first_segment) attention.finish(tile, total);
    }
  }
}

}  // namespace

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
  std::vector<QueryTile>& tiles = context.query_tiles;
  make_query_tiles(params, sequences, kMaxQueryRows, tiles);
  const Attention attention(context, q, view, params, tiles, out);
  if (static_cast<int64_t>(tiles.size()) < 4 * context.pool.num_threads()) {
    run_by_segments(context, attention, tiles);
  } else {
    run_by_tiles(context, attention, tiles);
  }
}

}  // namespace headrace
