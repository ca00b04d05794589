// The unfused default of a richer operation.
#include "backend/backend.h"

namespace headrace {

void Backend::linear_top(const LinearInput& input, const LinearTask& task, int32_t /*num_top*/) {
  linear(input, task);
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
