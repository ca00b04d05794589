// Mixtures of experts in Hugging Face configs.
#pragma once

#include "model/hf/hf_model.h"

namespace headrace {

/// Sets GGUF's keys of experts from `num_experts` (or `num_local_experts`), `num_experts_per_tok`,
/// `moe_intermediate_size` (or `intermediate_size`), `norm_topk_prob`, and, of models some of whose
/// layers are dense, "expert_layers", a key of this project's own with a flag for each layer, from
/// `decoder_sparse_step` and `mlp_only_layers`. Names the tensors of all experts of a layer.
void read_hf_moe(HfModel& model, bool normalise_by_default);

}  // namespace headrace
