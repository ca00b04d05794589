// See hf_moe.h.
#include "model/hf/hf_moe.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace headrace {
namespace {

constexpr int64_t kMostMoeLayers = 4096;

/// Newer versions of transformers keep all experts of a layer in two tensors, and may save them so.
constexpr std::array kFusedExpertNames = {
    HfName{"model.layers.#.mlp.experts.gate_up_proj", "blk.#.ffn_up_exps.weight",
           HfChange::gate_and_up},
    HfName{"model.layers.#.mlp.experts.down_proj", "blk.#.ffn_down_exps.weight",
           HfChange::expert_down},
};

void set_expert_layers(HfModel& model) {
  const HfConfig& config = model.config();
  const int64_t layers = config.integer("num_hidden_layers").value_or(0);
  const int64_t step = config.integer("decoder_sparse_step").value_or(1);
  const std::vector<int64_t> dense = config.integers("mlp_only_layers");
  if (step < 1) return config.fail("decoder_sparse_step", "expected a number above 0");
  std::vector<int64_t> flags;
  for (int64_t i = 0; i < std::min(layers, kMostMoeLayers); ++i) {
    const bool is_dense = std::ranges::find(dense, i) != dense.end() || (i + 1) % step != 0;
    flags.push_back(is_dense ? 0 : 1);
  }
  if (std::ranges::find(flags, 0) == flags.end()) return;
  model.set_ints("expert_layers", std::move(flags), "mlp_only_layers");
}

}  // namespace

void read_hf_moe(HfModel& model, bool normalise_by_default) {
  const HfConfig& config = model.config();
  const bool is_local = !config.has("num_experts") && config.has("num_local_experts");
  model.copy_int("expert_count", is_local ? "num_local_experts" : "num_experts");
  model.copy_int("expert_used_count", "num_experts_per_tok");
  if (config.has("moe_intermediate_size")) {
    model.copy_int("expert_feed_forward_length", "moe_intermediate_size");
  }
  model.set_bool("expert_weights_norm",
                 config.boolean("norm_topk_prob").value_or(normalise_by_default), "norm_topk_prob");
  set_expert_layers(model);
  model.add_names(kFusedExpertNames);
}

}  // namespace headrace
