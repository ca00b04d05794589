// Reads what a GGUF file says of its mixtures of experts.
#pragma once

#include "model/config.h"

namespace headrace {

/// What an architecture's files leave out.
struct MoeDefaults {
  bool normalise = false;  ///< "expert_weights_norm"
};

/// Sets `moe` and `is_moe_layer` of a config that read_decoder_config read, if the file has
/// experts. Keys: "expert_count", "expert_used_count", "expert_feed_forward_length" (or that of
/// dense layers), "expert_shared_feed_forward_length" (or "expert_shared_count" times an expert's),
/// "expert_weights_norm", "expert_weights_scale", "expert_gating_func",
/// "leading_dense_block_count", and this project's own "expert_layers", a flag for each layer.
/// Other gating functions and groups of experts are `unsupported`. An architecture that does not
/// call this has no experts: recognize() refuses its files that do.
void read_moe(ConfigReader& reader, const MoeDefaults& defaults, ModelConfig& config);

}  // namespace headrace
