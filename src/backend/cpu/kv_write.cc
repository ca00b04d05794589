// See attention.h.
#include <algorithm>

#include "backend/cpu/attention.h"
#include "backend/cpu/q8_shape.h"

namespace headrace {
namespace {

void write_panel(const CpuContext& context, const Tensor& k, const Tensor& v, const KvView& view,
                 const PanelRows& rows) {
  const KvPageLayout& layout = view.layout;
  const KvSequence& sequence = *rows.sequence;
  const int64_t row = rows.first_row;
  const int64_t position = sequence.first_position + row;
  const int32_t block = sequence.block_table[static_cast<size_t>(position / layout.block_tokens)];
  HEADRACE_CHECK_GE(block, 0);
  std::byte* page = view.page(block);
  const int64_t slot = position % layout.block_tokens;
  for (int64_t head = 0; head < layout.num_kv_heads; ++head) {
    const float* key = k.f32(sequence.first_row + row) + head * layout.head_dim;
    const float* value = v.f32(sequence.first_row + row) + head * layout.head_dim;
    if (is_quantized(layout.type)) {
      Q8Store store;
      store.k = key;
      store.v = value;
      store.stride = k.row_stride;
      store.num_tokens = rows.num_rows;
      store.slot = slot % kKeyPanelTokens;
      store.shape = q8_shape(layout);
      store.panel = page + layout.panel_at(head, slot);
      context.kernels.q8->store(store);
      continue;
    }
    for (int64_t i = 0; i < rows.num_rows; ++i) {
      const float* from_key = key + i * k.row_stride;
      const float* from_value = value + i * v.row_stride;
      const int64_t key_at = layout.key_index(head, slot + i, 0);
      const int64_t value_at = layout.value_index(head, slot + i);
      if (layout.type == KvType::f32) {
        auto* to = reinterpret_cast<float*>(page);
        std::copy_n(from_value, layout.head_dim, to + value_at);
        for (int64_t d = 0; d < layout.head_dim; ++d) {
          to[key_at + d * kKeyPanelTokens] = from_key[d];
        }
      } else {
        auto* to = reinterpret_cast<uint16_t*>(page);
        context.kernels.to_f16(from_value, layout.head_dim, to + value_at);
        uint16_t halves[kMaxHeadDim];
        context.kernels.to_f16(from_key, layout.head_dim, halves);
        for (int64_t d = 0; d < layout.head_dim; ++d) to[key_at + d * kKeyPanelTokens] = halves[d];
      }
    }
  }
}

void check(const Tensor& k, const Tensor& v, const KvView& view,
           std::span<const KvSequence> sequences) {
  HEADRACE_CHECK_EQ(k.cols, view.layout.num_kv_heads * view.layout.head_dim);
  HEADRACE_CHECK_EQ(v.cols, k.cols);
  HEADRACE_CHECK_EQ(v.row_stride, k.row_stride);
  for (const KvSequence& sequence : sequences) {
    HEADRACE_CHECK_LE(sequence.first_position + sequence.num_rows,
                      static_cast<int64_t>(sequence.block_table.size()) * view.layout.block_tokens);
  }
}

/// f(rows) for all rows, a panel's rows in one task; a row's `work` as in CpuContext::for_rows.
void for_panels(CpuContext& context, std::span<const KvSequence> sequences, int64_t work,
                FunctionRef<void(const PanelRows&)> f) {
  make_panel_rows(sequences, context.panel_rows);
  int64_t num_rows = 0;
  for (const KvSequence& sequence : sequences) num_rows += sequence.num_rows;
  const auto num_panels = static_cast<int64_t>(context.panel_rows.size());
  if (num_panels == 0) return;
  context.for_rows(num_panels, num_rows / num_panels * work,
                   [&](int64_t i) { f(context.panel_rows[static_cast<size_t>(i)]); });
}

/// Norm and rotation of each head of a row, where there are weights and angles for them.
void finish_heads(const KernelTable& kernels, const Tensor& x, int64_t row, int64_t head_dim,
                  const Tensor& norm, float eps, const Tensor& angles) {
  const int64_t num_pairs = angles.cols / 2;
  const float* cos = angles.data != nullptr ? angles.f32(row) : nullptr;
  for (int64_t at = 0; at < x.cols; at += head_dim) {
    float* head = x.f32(row) + at;
    if (norm.data != nullptr) kernels.rms_norm(head, norm.f32(), head_dim, eps, head);
    if (cos != nullptr) kernels.rope_neox(head, cos, cos + num_pairs, num_pairs);
  }
}

}  // namespace

void cpu_kv_write(CpuContext& context, const Tensor& k, const Tensor& v, const KvView& view,
                  std::span<const KvSequence> sequences) {
  check(k, v, view, sequences);
  for_panels(context, sequences, 16 * k.cols,
             [&](const PanelRows& rows) { write_panel(context, k, v, view, rows); });
}

void cpu_finish_qkv(CpuContext& context, const QkvTask& task, const KvView& view,
                    std::span<const KvSequence> sequences) {
  check(task.k, task.v, view, sequences);
  const int64_t head_dim = view.layout.head_dim;
  HEADRACE_CHECK_LE(task.angles.cols, head_dim);
  HEADRACE_CHECK_EQ(task.q.cols % head_dim, 0);
  for_panels(context, sequences, 4 * task.q.cols + 16 * task.k.cols, [&](const PanelRows& rows) {
    const int64_t first = rows.sequence->first_row + rows.first_row;
    for (int64_t row = first; row < first + rows.num_rows; ++row) {
      finish_heads(context.kernels, task.q, row, head_dim, task.q_norm, task.norm_eps, task.angles);
      finish_heads(context.kernels, task.k, row, head_dim, task.k_norm, task.norm_eps, task.angles);
    }
    write_panel(context, task.k, task.v, view, rows);
  });
}

}  // namespace headrace
