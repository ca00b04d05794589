// See attention.h.
#include "model/blocks/attention.h"

#include <array>

namespace headrace {

void AttentionBlock::apply(Backend& backend, const Tensor& x, const Tensor& angles,
                           const StepCache& cache, int64_t layer_in_group, Activations& a,
                           const Tensor& out) const {
  const Tensor queries = a.q.view(x.rows);
  const Tensor keys = a.k.view(x.rows);
  const Tensor values = a.v.view(x.rows);
  const Tensor attended = a.attended.view(x.rows);
  const KvView& view = cache.layers[static_cast<size_t>(layer_in_group)];

  const std::array tasks = {q.task(queries), k.task(keys), v.task(values)};
  backend.linear_group(x, tasks);
  if (q_norm) q_norm->apply_to_heads(backend, queries);
  if (k_norm) k_norm->apply_to_heads(backend, keys);
  // The loader orders the rows of q and k so that pairs are always (i, i + dims / 2).
  backend.rope(queries, angles, params.head_dim, RopePairing::neox);
  backend.rope(keys, angles, params.head_dim, RopePairing::neox);
  backend.kv_write(keys, values, view, cache.sequences);
  backend.attention(queries, view, params, cache.sequences, attended);
  backend.linear(attended, output.task(out));
}

}  // namespace headrace
