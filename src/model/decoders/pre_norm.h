// Decoders whose blocks read the normed residual stream and add to it: Llama and all that are built
// like it. What differs from one to the other is a trait or a number of the config.
#pragma once

#include <memory>
#include <vector>

#include "model/blocks/mlp.h"
#include "model/decoder.h"

namespace headrace {

struct PreNormTraits {
  Activation activation = Activation::silu;
  /// Queries and keys have an RMS norm over each head ("attn_q_norm", "attn_k_norm").
  bool has_head_norms = false;
  /// Queries and keys have an RMS norm over all heads together, of the same names.
  bool has_row_norms = false;
  /// "ffn_up" holds the gate's rows above those of up.
  bool is_gate_fused = false;
};

/// Tensors: those of Decoder; "attn_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down" a layer;
/// in those with experts, those of load_moe (blocks/moe.h).
std::unique_ptr<Decoder> load_pre_norm(ModelConfig config, Loader& load,
                                       const PreNormTraits& traits);

}  // namespace headrace
