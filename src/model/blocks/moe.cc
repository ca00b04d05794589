// See moe.h.
#include "model/blocks/moe.h"

#include <utility>

#include "model/decoder.h"
#include "model/loader.h"

namespace headrace {
namespace {

Expert view_of(const GatedMlp& mlp) {
  return {mlp.gate.weight.get(), mlp.up.weight.get(), mlp.down.weight.get(),
          mlp.gate.bias.view(),  mlp.up.bias.view(),  mlp.down.bias.view()};
}

/// Rows of a buffer, each cut into rows of `cols`.
Tensor cut_rows(const Buffer& buffer, int64_t rows, int64_t cols) {
  const Tensor x = buffer.view(rows);
  return {x.data, x.dtype, cols == 0 ? 0 : rows * x.cols / cols, cols, cols};
}

}  // namespace

void MoeBlock::apply(Backend& backend, const LinearInput& x, Activations& a, const Tensor& out,
                     const Tensor& add_to) const {
  const int64_t rows = out.rows;
  MoeTask task;
  task.input = x;
  task.scores = a.expert_scores.view(rows);
  std::vector<LinearTask>& routers = a.router_tasks;
  routers.assign(1, router.task(task.scores));
  if (shared_gate) {
    task.shared_scores = a.shared_score.view(rows);
    routers.push_back(shared_gate->task(task.shared_scores));
  }
  backend.linear(x, routers);

  task.experts = std::span(views_).first(experts.size());
  task.routing = {.num_active = config.num_active,
                  .gating = config.gating == MoeConfig::Gating::softmax
                                ? ExpertRouting::Gating::softmax
                                : ExpertRouting::Gating::sigmoid,
                  .normalises = config.normalise,
                  .scale = config.scale};
  task.activation = activation;
  task.gate = cut_rows(a.expert_gate, rows, config.expert_length);
  task.up = cut_rows(a.expert_up, rows, config.expert_length);
  if (shared) {
    task.shared = &views_.back();
    task.shared_gate = first_cols(a.gate.view(rows), config.shared_length);
    task.shared_up = first_cols(a.up.view(rows), config.shared_length);
  }
  task.parts = cut_rows(a.expert_parts, rows, out.cols);
  task.out = out;
  task.add_to = add_to;
  task.scale = scale;
  backend.moe(task);
}

MoeBlock load_moe(Loader& load, int64_t layer, const MoeConfig& config, int64_t embedding) {
  const auto name = [&](std::string_view tensor) { return layer_tensor(layer, tensor); };
  const int64_t length = config.expert_length;
  MoeBlock out;
  out.config = config;
  out.router = load.exact_linear(name("ffn_gate_inp"), config.num_experts, embedding);
  auto gates = load.experts(name("ffn_gate"), config, length, embedding);
  auto ups = load.experts(name("ffn_up"), config, length, embedding);
  auto downs = load.experts(name("ffn_down"), config, embedding, length);
  for (size_t e = 0; e < gates.size(); ++e) {
    GatedMlp& expert = out.experts.emplace_back();
    expert.gate = std::move(gates[e]);
    expert.up = std::move(ups[e]);
    expert.down = std::move(downs[e]);
    out.views_.push_back(view_of(expert));
  }
  if (config.shared_length == 0) return out;
  GatedMlp& shared = out.shared.emplace();
  shared.gate = load.expert_linear(name("ffn_gate_shexp"), config.shared_length, embedding);
  shared.up = load.expert_linear(name("ffn_up_shexp"), config.shared_length, embedding);
  shared.down = load.expert_linear(name("ffn_down_shexp"), embedding, config.shared_length);
  out.views_.push_back(view_of(shared));
  if (load.has(name("ffn_gate_inp_shexp"))) {
    out.shared_gate = load.exact_linear(name("ffn_gate_inp_shexp"), 1, embedding);
  }
  return out;
}

}  // namespace headrace
