// The attention block: projections, optional norms of queries and keys, rotary embedding, KV write,
// attention to the cache, output projection.
#pragma once

#include <optional>

#include "model/blocks/activations.h"
#include "model/blocks/linear.h"
#include "model/blocks/norm.h"
#include "model/model.h"

namespace headrace {

struct AttentionBlock {
  Linear q;                                       ///< [num_heads * head_dim, embedding]
  Linear k, v;                                    ///< [num_kv_heads * head_dim, embedding]
  Linear output;                                  ///< [embedding, num_heads * head_dim]
  std::optional<RmsNorm> q_norm, k_norm;          ///< over each head, before the rotation
  std::optional<RmsNorm> q_row_norm, k_row_norm;  ///< over all heads together, before the rotation
  std::optional<HeadLayerNorm> q_layer_norm, k_layer_norm;  ///< over each head, with own weights
  float qkv_limit = 0;  ///< after the norms over rows, all three are clamped to it; 0: not
  AttentionParams params;
  float output_scale = 1.0F;  ///< the block's result is multiplied by it

  /// x and out: [rows, embedding]; add_to: likewise, += out, or without data. `angles`:
  /// Rope::angles of the step, or without data: nothing is rotated. `cache` is the layer's group,
  /// `layer_in_group` its page within a block.
  void apply(Backend& backend, const LinearInput& x, const Tensor& angles, const StepCache& cache,
             int64_t layer_in_group, Activations& a, const Tensor& out, const Tensor& add_to) const;
};

}  // namespace headrace
