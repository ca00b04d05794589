// Decoders whose blocks are normed before and after (Gemma 2 and 3): x += norm(block(norm(x))).
#pragma once

#include <memory>

#include "model/decoder.h"

namespace headrace {

struct SandwichTraits {
  /// Queries and keys have an RMS norm over each head ("attn_q_norm", "attn_k_norm").
  bool has_head_norms = false;
};

/// Tensors: those of Decoder; "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm",
/// "ffn_gate", "ffn_up", "ffn_down" a layer. The activation is GELU by tanh.
std::unique_ptr<Decoder> load_sandwich(ModelConfig config, Loader& load,
                                       const SandwichTraits& traits);

}  // namespace headrace
