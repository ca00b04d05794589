// See decoder.h.
#include "model/decoder.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace headrace {

namespace {

/// The rotary embedding of layers without a window, with the divisors that the file holds.
std::optional<Rope> load_rope(Loader& load, const RopeConfig& config) {
  if (config.dims == 0) return std::nullopt;
  const int64_t pairs = config.dims / 2;
  if (config.scaling == RopeConfig::Scaling::longrope || load.has("rope_factors_long")) {
    const LongRopeDivisors divisors{load.divisors("rope_factors_short", pairs),
                                    load.divisors("rope_factors_long", pairs)};
    // A tensor that is missing has been noted.
    if (divisors.short_context.empty() || divisors.long_context.empty()) return std::nullopt;
    return Rope(load.backend(), config, divisors);
  }
  return Rope(load.backend(), config, load.optional_divisors("rope_freqs", pairs));
}

}  // namespace

Decoder::Decoder(ModelConfig config, Loader& load)
    : LoadedModel(std::move(config), load), rope_(load_rope(load, config_.rope)) {
  if (config_.rope_window) rope_window_.emplace(backend_, *config_.rope_window, std::span<float>());
  const bool finds_top = config_.final_soft_cap == 0;
  embedding_.table =
      load.table("token_embd", config_.embedding_length, !load.has("output") && finds_top);
  embedding_.scale = config_.embedding_scale;
  head_.norm = load_norm(load, "output_norm");
  head_.scale = config_.logit_scale;
  head_.soft_cap = config_.final_soft_cap;
  if (load.has("output")) {
    head_.own = load.head("output", vocab_size(), config_.embedding_length, finds_top);
  } else {
    head_.tied = embedding_.table.get();
  }
  set_up();
}

Norm Decoder::load_norm(Loader& load, const std::string& name) const {
  const int64_t embedding = config_.embedding_length;
  if (config_.norm == NormKind::layer) return load.layer_norm(name, embedding, config_.norm_eps);
  return load.norm(name, embedding, config_.norm_eps);
}

AttentionBlock Decoder::load_attention(Loader& load, int64_t index) const {
  const int64_t dim = config_.head_dim;
  const int64_t embedding = config_.embedding_length;
  const int64_t query_size = config_.num_heads * dim;
  const int64_t key_size = config_.num_kv_heads * dim;
  AttentionBlock out;
  if (load.has(layer_tensor(index, "attn_qkv"))) {
    const std::array sizes = {query_size, key_size, key_size};
    auto parts = load.fused_linear(layer_tensor(index, "attn_qkv"), sizes, embedding);
    out.q = std::move(parts[0]);
    out.k = std::move(parts[1]);
    out.v = std::move(parts[2]);
  } else {
    const HeadRows query_rows{config_.num_heads, dim, config_.rope.dims};
    const HeadRows key_rows{config_.num_kv_heads, dim, config_.rope.dims};
    out.q = load.rope_linear(layer_tensor(index, "attn_q"), query_rows, embedding);
    out.k = load.rope_linear(layer_tensor(index, "attn_k"), key_rows, embedding);
    out.v = load.linear(layer_tensor(index, "attn_v"), key_size, embedding);
  }
  out.output = load.linear(layer_tensor(index, "attn_output"), embedding, query_size);
  out.output_scale = config_.residual_scale;
  out.qkv_limit = config_.qkv_limit;
  out.params = {.num_heads = config_.num_heads,
                .num_kv_heads = config_.num_kv_heads,
                .head_dim = dim,
                .scale = config_.attention_scale,
                .soft_cap = config_.attention_soft_cap,
                .window = is_window(static_cast<size_t>(index)) ? config_.window : 0,
                .causal = true};
  return out;
}

void Decoder::load_head_norms(Loader& load, int64_t index, AttentionBlock& attention) const {
  std::tie(attention.q_norm, attention.k_norm) = load.head_norms(
      layer_tensor(index, "attn_q_norm"), layer_tensor(index, "attn_k_norm"),
      {.head_dim = config_.head_dim, .rope_dims = config_.rope.dims}, config_.norm_eps);
}

void Decoder::load_row_norms(Loader& load, int64_t index, AttentionBlock& attention) const {
  const int64_t dim = config_.head_dim;
  attention.q_row_norm =
      load.norm(layer_tensor(index, "attn_q_norm"), config_.num_heads * dim, config_.norm_eps);
  attention.k_row_norm =
      load.norm(layer_tensor(index, "attn_k_norm"), config_.num_kv_heads * dim, config_.norm_eps);
}

Tensor Decoder::compute(const StepInput& step) {
  Activations& a = *activations_;
  const auto rows = static_cast<int64_t>(step.tokens.size());
  LayerStep layer{step, a, a.x.view(rows), a.delta.view(rows)};
  embed(step, layer.x, layer.delta);
  turn(step.positions);
  for (; layer.index < static_cast<size_t>(config_.num_layers); ++layer.index) {
    if (is_unwanted(step)) return {};
    run_layer(layer);
  }
  return head_.apply(backend_, layer.x, step, a);
}

void Decoder::embed(const StepInput& step, const Tensor& x, const Tensor& /*scratch*/) {
  embedding_.apply(backend_, step.tokens, x);
}

void Decoder::attend(const AttentionBlock& attention, const LinearInput& in, const LayerStep& step,
                     const Tensor& add_to) {
  attention.apply(backend_, in, angles_of(step.index), cache_of(step.input, step.index),
                  layer_in_group(step.index), step.buffers, step.delta, add_to);
}

void Decoder::turn(std::span<const int32_t> positions) {
  angles_ = rope_ ? rope_->angles(positions) : Tensor();
  window_angles_ = rope_window_ ? rope_window_->angles(positions) : angles_;
}

const Tensor& Decoder::angles_of(size_t index) const {
  static const Tensor none;
  if (!config_.has_positions.empty() && !config_.has_positions[index]) return none;
  return is_window(index) ? window_angles_ : angles_;
}

WeightWork Decoder::weight_work() const {
  const Matrix& head = head_.own.weight ? *head_.own.weight : *embedding_.table;
  const auto elements = [](const Matrix& matrix) { return matrix.rows() * matrix.cols(); };
  WeightWork work;
  work.head_bytes = head.linear_bytes();
  work.top_bytes = head.top_bytes();
  work.head_macs = elements(head);
  work.layer_bytes = info().weight_bytes - head.bytes();
  work.layer_macs = loaded().matrix_elements - elements(head);
  if (head_.own.weight) {
    // Of an embedding of its own a step reads a row a token, which is next to nothing.
    work.layer_bytes -= embedding_.table->bytes();
    work.layer_macs -= elements(*embedding_.table);
  }
  if (config_.moe) {
    const auto count = static_cast<uint64_t>(config_.moe->num_experts);
    const auto active = static_cast<uint64_t>(config_.moe->num_active);
    work.expert_bytes = loaded().expert_bytes;
    work.active_share = static_cast<double>(active) / static_cast<double>(count);
    work.layer_bytes -= loaded().expert_bytes / count * (count - active);
    work.layer_macs -= loaded().expert_elements / config_.moe->num_experts *
                       (config_.moe->num_experts - config_.moe->num_active);
  }
  return work;
}

void Decoder::set_context(int64_t max_tokens) {
  if (rope_) rope_->set_context(max_tokens);
}

std::string Decoder::key_variant(int64_t max_tokens) const {
  return rope_ && rope_->is_long_for(max_tokens) ? "long context" : "";
}

void Decoder::reserve(int64_t max_rows, int64_t max_logit_rows) {
  if (max_rows > activations_->max_rows()) {
    if (rope_) rope_->reserve(max_rows);
    if (rope_window_) rope_window_->reserve(max_rows);
  }
  activations_->reserve(max_rows, max_logit_rows);
  reserve_adapters(max_rows, max_logit_rows);
}

}  // namespace headrace
