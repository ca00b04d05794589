// The feed-forward block that is a mixture of experts (arXiv:2101.03961, arXiv:2401.04088): a
// router chooses a few for each token, whose results are added with the router's weights; a shared
// expert (arXiv:2401.06066) may be added to all.
#pragma once

#include <optional>
#include <vector>

#include "model/blocks/activations.h"
#include "model/blocks/linear.h"
#include "model/blocks/mlp.h"
#include "model/blocks/moe_config.h"

namespace headrace {

class Loader;

struct MoeBlock {
  MoeConfig config;
  Linear router;                      ///< [num_experts, embedding], exact
  std::vector<GatedMlp> experts;      ///< of them, gate, up and down count
  std::optional<GatedMlp> shared;     ///< likewise
  std::optional<Linear> shared_gate;  ///< [1, embedding]: what `shared` gives is times its sigmoid
  Activation activation = Activation::silu;
  float scale = 1.0F;  ///< the block's result is multiplied by it

  /// As GatedMlp::apply.
  void apply(Backend& backend, const LinearInput& x, Activations& a, const Tensor& out,
             const Tensor& add_to) const;

 private:
  friend MoeBlock load_moe(Loader& load, int64_t layer, const MoeConfig& config, int64_t embedding);

  /// What the backend is given: experts, then the shared one. Weights and biases do not move with
  /// the block.
  std::vector<Expert> views_;
};

/// Tensors of layer `layer`: "ffn_gate_inp", the router; "ffn_gate_exps", "ffn_up_exps" and
/// "ffn_down_exps", [experts, rows, cols], or in older files "ffn_gate.E", "ffn_up.E" and
/// "ffn_down.E", one an expert; with a shared expert "ffn_gate_shexp", "ffn_up_shexp",
/// "ffn_down_shexp" and, where a file has it, "ffn_gate_inp_shexp". Faults: those of the loader.
MoeBlock load_moe(Loader& load, int64_t layer, const MoeConfig& config, int64_t embedding);

}  // namespace headrace
