// See loaded_model.h.
#include "model/loaded_model.h"

#include <algorithm>

namespace headrace {

std::string layer_tensor(int64_t index, std::string_view name) {
  return "blk." + std::to_string(index) + "." + std::string(name);
}

std::vector<CacheSpec> cache_specs_of(const ModelConfig& config) {
  std::vector<CacheSpec> specs;
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const bool window = config.is_window_layer[static_cast<size_t>(i)];
    specs.push_back({.kind = window ? CacheSpec::Kind::window : CacheSpec::Kind::paged,
                     .num_kv_heads = config.num_kv_heads,
                     .head_dim = config.head_dim,
                     .window = window ? config.window : 0});
  }
  return specs;
}

ActivationSizes activation_sizes_of(const ModelConfig& config, int64_t vocab_size) {
  // Of an encoder it is classes that are told, and hardly any.
  constexpr int64_t kMostClasses = 1024;
  ActivationSizes sizes{.embedding = config.embedding_length,
                        .queries = config.num_heads * config.head_dim,
                        .keys = config.num_kv_heads * config.head_dim,
                        .feed_forward = config.feed_forward_length,
                        .vocab = config.is_encoder ? kMostClasses : vocab_size};
  if (!config.moe) return sizes;
  const MoeConfig& moe = *config.moe;
  const bool has_dense = std::find(config.is_moe_layer.begin(), config.is_moe_layer.end(), false) !=
                         config.is_moe_layer.end();
  sizes.feed_forward =
      std::max(has_dense ? config.feed_forward_length : int64_t{0}, moe.shared_length);
  sizes.experts = moe.num_experts;
  sizes.shared_scores = moe.shared_length > 0 ? 1 : 0;
  sizes.expert_hidden = moe.num_active * moe.expert_length;
  sizes.expert_parts = (moe.num_active + sizes.shared_scores) * config.embedding_length;
  return sizes;
}

void LoadedModel::set_up() {
  cache_specs_ = cache_specs_of(config_);
  groups_ = group_layers(cache_specs_);
  activations_ =
      std::make_unique<Activations>(backend_, activation_sizes_of(config_, vocab_size()));
}

Mlp LoadedModel::load_mlp(Loader& load, int64_t index, Activation activation) const {
  const int64_t embedding = config_.embedding_length;
  const int64_t hidden = config_.feed_forward_length;
  return {.up = load.linear(layer_tensor(index, "ffn_up"), hidden, embedding),
          .down = load.linear(layer_tensor(index, "ffn_down"), embedding, hidden),
          .activation = activation,
          .scale = config_.residual_scale};
}

GatedMlp LoadedModel::load_gated_mlp(Loader& load, int64_t index, Activation activation) const {
  Mlp plain = load_mlp(load, index, activation);
  return {.gate = load.linear(layer_tensor(index, "ffn_gate"), config_.feed_forward_length,
                              config_.embedding_length),
          .up = std::move(plain.up),
          .down = std::move(plain.down),
          .activation = activation,
          .scale = config_.residual_scale};
}

Tensor LoadedModel::forward(const StepInput& step) {
  if (adapters_) adapters_->begin_step(step.adapters, step.logit_rows);
  return compute(step);
}

void LoadedModel::reserve_adapters(int64_t max_rows, int64_t max_logit_rows) {
  if (adapters_) adapters_->reserve(backend_, max_rows, max_logit_rows);
}

Result<void> LoadedModel::check_weights() const {
  if (files_ == nullptr) return {};
  return files_->check_unchanged();
}

}  // namespace headrace
