// Decoders whose blocks read the normed residual stream and add to it, with a feed-forward block
// that has no gate (GPT-2, XGLM, StarCoder2): down(activation(up(x))).
#pragma once

#include <memory>

#include "model/blocks/absolute_positions.h"
#include "model/decoder.h"

namespace headrace {

/// Tensors: those of Decoder; "attn_norm", "ffn_norm", "ffn_up", "ffn_down" a layer. Norm and
/// activation are the config's. `positions` are added to the embedding; without a table: none.
std::unique_ptr<Decoder> load_ungated(ModelConfig config, Loader& load,
                                      AbsolutePositions positions = {});

}  // namespace headrace
