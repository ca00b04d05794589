// See attention.h.
#include "model/blocks/attention.h"

#include <array>

namespace headrace {

void AttentionBlock::apply(Backend& backend, const LinearInput& x, const Tensor& angles,
                           const StepCache& cache, int64_t layer_in_group, Activations& a,
                           const Tensor& out, const Tensor& add_to) const {
  const Tensor queries = a.q.view(out.rows);
  const Tensor keys = a.k.view(out.rows);
  const Tensor values = a.v.view(out.rows);
  const Tensor attended = a.attended.view(out.rows);
  const KvView& view = cache.layers[static_cast<size_t>(layer_in_group)];

  const std::array products = {q.task(queries), k.task(keys), v.task(values)};
  backend.linear(x, products);
  QkvTask task;
  task.q = queries;
  task.k = keys;
  task.v = values;
  task.angles = angles;
  if (q_norm) task.q_norm = q_norm->weight.view();
  if (k_norm) task.k_norm = k_norm->weight.view();
  if (k_norm) task.norm_eps = k_norm->eps;
  // The loader orders the rows of q and k so that pairs are always (i, i + dims / 2).
  backend.finish_qkv(task, view, cache.sequences);
  backend.attention(queries, view, params, cache.sequences, attended);
  backend.linear(attended, output.task(out, add_to, output_scale));
}

}  // namespace headrace
