// The parts of operations that do not depend on the device, and the unfused default of a richer
// one.
#include "backend/backend.h"

#include <algorithm>
#include <array>

namespace headrace {
namespace {

/// Null where the adapter adds nothing to the product.
const LowRank* part_of(const LinearTask& task, int32_t adapter) {
  const auto index = static_cast<size_t>(adapter);
  if (index >= task.adapters.size() || task.adapters[index].down == nullptr) return nullptr;
  return &task.adapters[index];
}

bool has_adapted_rows(const LinearTask& task) {
  return task.adapter_step != nullptr && !task.adapters.empty() && !task.adapter_step->rows.empty();
}

LinearInput slice_rows(const LinearInput& input, const AdapterRows& rows) {
  LinearInput out = input;
  out.x = input.x.slice_rows(rows.first_row, rows.num_rows);
  if (input.up.data != nullptr) out.up = input.up.slice_rows(rows.first_row, rows.num_rows);
  return out;
}

/// Columns [begin, begin + count) of f32.
Tensor slice_cols(Tensor x, int64_t begin, int64_t count) {
  HEADRACE_CHECK_LE(begin + count, x.cols);
  x.data = x.f32() + begin;
  x.cols = count;
  return x;
}

}  // namespace

void Backend::linear(const LinearInput& input, std::span<const LinearTask> tasks) {
  multiply(input, tasks);
  for (const LinearTask& task : tasks) {
    if (!has_adapted_rows(task)) continue;
    for (const AdapterRows& rows : task.adapter_step->rows) add_adapter(input, tasks, rows);
    return;  // products that share their input share their rows
  }
}

void Backend::add_adapter(const LinearInput& input, std::span<const LinearTask> tasks,
                          const AdapterRows& rows) {
  std::array<LinearTask, kMostAdapted> downs, ups;
  size_t count = 0;
  int64_t first_col = 0;
  for (const LinearTask& task : tasks) {
    const LowRank* part = part_of(task, rows.adapter);
    if (part == nullptr) continue;
    HEADRACE_CHECK_LT(count, downs.size());
    const AdapterStep& step = *task.adapter_step;
    const Tensor low =
        slice_cols(step.low.slice_rows(0, rows.num_rows), first_col, part->down->rows());
    first_col += low.cols;
    const Tensor& sum = task.add_to.data != nullptr ? task.add_to : task.out;
    downs[count] = {.weight = part->down, .bias = {}, .out = low};
    ups[count] = {.weight = part->up,
                  .bias = {},
                  .out = slice_cols(step.added.slice_rows(0, rows.num_rows), 0, task.out.cols),
                  .add_to = sum.slice_rows(rows.first_row, rows.num_rows),
                  .scale = task.scale * part->scale * rows.strength};
    ++count;
  }
  if (count == 0) return;
  multiply(slice_rows(input, rows), std::span(downs).first(count));
  for (size_t i = 0; i < count; ++i) multiply(downs[i].out, std::span(&ups[i], 1));
}

void Backend::linear_top(const LinearInput& input, const LinearTask& task, int32_t num_top) {
  if (has_adapted_rows(task)) {
    linear(input, task);
  } else {
    multiply_top(input, task, num_top);
  }
}

void Backend::multiply_top(const LinearInput& input, const LinearTask& task, int32_t /*num_top*/) {
  multiply(input, std::span(&task, 1));
}

void Backend::finish_qkv(const QkvTask& task, const KvView& view,
                         std::span<const KvSequence> sequences) {
  const int64_t head_dim = view.layout.head_dim;
  if (task.q_norm.data != nullptr) head_rms_norm(task.q, head_dim, task.q_norm, task.norm_eps);
  if (task.k_norm.data != nullptr) head_rms_norm(task.k, head_dim, task.k_norm, task.norm_eps);
  rope(task.q, task.angles, head_dim);  // nothing where there are no angles
  rope(task.k, task.angles, head_dim);
  kv_write(task.k, task.v, view, sequences);
}

}  // namespace headrace
