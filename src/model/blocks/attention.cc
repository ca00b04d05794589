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
  if (q_row_norm) backend.rms_norm(queries, q_row_norm->weight.view(), q_row_norm->eps, queries);
  if (k_row_norm) backend.rms_norm(keys, k_row_norm->weight.view(), k_row_norm->eps, keys);
  if (q_layer_norm) {
    backend.head_layer_norm(queries, params.head_dim, q_layer_norm->weight.view(),
                            q_layer_norm->eps);
  }
  if (k_layer_norm) {
    backend.head_layer_norm(keys, params.head_dim, k_layer_norm->weight.view(), k_layer_norm->eps);
  }
  if (qkv_limit > 0) {
    for (const Tensor& rows : {queries, keys, values}) backend.clamp(rows, qkv_limit);
  }
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
