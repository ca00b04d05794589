// See decoder.h.
#include "model/decoder.h"

#include <utility>

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
  return {.embedding = config.embedding_length,
          .queries = config.num_heads * config.head_dim,
          .keys = config.num_kv_heads * config.head_dim,
          .feed_forward = config.feed_forward_length,
          .vocab = vocab_size};
}

Decoder::Decoder(ModelConfig config, Loader& load)
    : config_(std::move(config)),
      backend_(load.backend()),
      rope_(backend_, config_.rope, load.optional_divisors("rope_freqs", config_.rope.dims / 2)) {
  if (config_.rope_window) rope_window_.emplace(backend_, *config_.rope_window, std::span<float>());
  embedding_.table = load.table("token_embd", config_.embedding_length,
                                !load.has("output") && config_.final_soft_cap == 0);
  head_.norm = load.norm("output_norm", config_.embedding_length, config_.norm_eps);
  head_.soft_cap = config_.final_soft_cap;
  if (load.has("output")) {
    head_.own =
        load.head("output", vocab_size(), config_.embedding_length, config_.final_soft_cap == 0);
  } else {
    head_.tied = embedding_.table.get();
  }

  cache_specs_ = cache_specs_of(config_);
  groups_ = group_layers(cache_specs_);
  activations_ =
      std::make_unique<Activations>(backend_, activation_sizes_of(config_, vocab_size()));
}

AttentionBlock Decoder::load_attention(Loader& load, int64_t index) const {
  const int64_t dim = config_.head_dim;
  const int64_t embedding = config_.embedding_length;
  const HeadRows query_rows{config_.num_heads, dim, config_.rope.dims};
  const HeadRows key_rows{config_.num_kv_heads, dim, config_.rope.dims};
  AttentionBlock out;
  out.q = load.rope_linear(layer_tensor(index, "attn_q"), query_rows, embedding);
  out.k = load.rope_linear(layer_tensor(index, "attn_k"), key_rows, embedding);
  out.v = load.linear(layer_tensor(index, "attn_v"), config_.num_kv_heads * dim, embedding);
  out.output = load.linear(layer_tensor(index, "attn_output"), embedding, config_.num_heads * dim);
  out.params = {.num_heads = config_.num_heads,
                .num_kv_heads = config_.num_kv_heads,
                .head_dim = dim,
                .scale = config_.attention_scale,
                .soft_cap = config_.attention_soft_cap,
                .window = config_.is_window_layer[static_cast<size_t>(index)] ? config_.window : 0,
                .causal = true};
  return out;
}

WeightWork Decoder::weight_work() const {
  const Matrix& head = head_.own.weight ? *head_.own.weight : *embedding_.table;
  const auto elements = [](const Matrix& matrix) { return matrix.rows() * matrix.cols(); };
  WeightWork work;
  work.head_bytes = head.linear_bytes();
  work.top_bytes = head.top_bytes();
  work.head_macs = elements(head);
  work.layer_bytes = info_.weight_bytes - head.bytes();
  work.layer_macs = matrix_elements_ - elements(head);
  if (head_.own.weight) {
    // Of an embedding of its own a step reads a row a token, which is next to nothing.
    work.layer_bytes -= embedding_.table->bytes();
    work.layer_macs -= elements(*embedding_.table);
  }
  return work;
}

Result<void> Decoder::check_weights() const {
  if (files_ == nullptr) return {};
  return files_->check_unchanged();
}

void Decoder::reserve(int64_t max_rows, int64_t max_logit_rows) {
  if (max_rows > activations_->max_rows()) {
    rope_.reserve(max_rows);
    if (rope_window_) rope_window_->reserve(max_rows);
  }
  activations_->reserve(max_rows, max_logit_rows);
}

}  // namespace headrace
