// See encoder.h.
#include "model/encoder.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace headrace {
namespace {

constexpr int64_t kMaxEncoderSize = int64_t{1} << 20;
constexpr int64_t kMaxEncoderLayers = 1024;
/// A step holds the longest text.
constexpr int64_t kMaxEncoderContext = 65'536;

}  // namespace

ModelConfig read_encoder_config(ConfigReader& reader, std::string_view architecture) {
  ModelConfig config;
  config.architecture = architecture;
  config.is_encoder = true;
  config.context_length = reader.required_int("context_length", 1, kMaxEncoderContext);
  config.num_layers = reader.required_int("block_count", 1, kMaxEncoderLayers);
  config.embedding_length = reader.required_int("embedding_length", 1, kMaxEncoderSize);
  config.feed_forward_length = reader.required_int("feed_forward_length", 1, kMaxEncoderSize);
  config.num_heads = reader.required_int("attention.head_count", 1, kMaxEncoderSize);
  config.num_kv_heads = config.num_heads;
  config.head_dim = config.embedding_length / config.num_heads;
  if (config.head_dim * config.num_heads != config.embedding_length || config.head_dim > 4096) {
    reader.fail(ErrorCode::corrupt_data, "attention.head_count",
                std::to_string(config.num_heads) + " heads do not share an embedding of " +
                    std::to_string(config.embedding_length) + " evenly");
  }
  config.norm_eps = static_cast<float>(reader.required_float("attention.layer_norm_epsilon", 0));
  config.attention_scale =
      static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<int64_t>(config.head_dim, 1))));
  if (reader.optional_bool("attention.causal", false)) {
    reader.fail(ErrorCode::unsupported, "attention.causal",
                "causal attention is not built in for this architecture");
  }
  config.is_window_layer.assign(static_cast<size_t>(config.num_layers), false);
  config.pooling = read_pooling(reader);
  config.normalizes = reader.optional_bool("normalize_embeddings", true);
  return config;
}

Encoder::Encoder(ModelConfig config, Loader& load) : LoadedModel(std::move(config), load) {
  const int64_t embedding = config_.embedding_length;
  embedding_.table = load.table("token_embd", embedding);
  if (load.has("cls")) pooler_ = load.linear("cls", embedding, embedding);
  if (load.has("cls.output")) {
    // Wider ones would be no classes.
    const int64_t most = activation_sizes_of(config_, 0).vocab;
    const int64_t rows = std::clamp<int64_t>(load.rows_of("cls.output"), 1, most);
    classes_ = load.linear("cls.output", rows, embedding);
  }
  set_up();
}

AttentionBlock Encoder::load_attention(Loader& load, int64_t index) const {
  const int64_t embedding = config_.embedding_length;
  AttentionBlock out;
  out.q = load.linear(layer_tensor(index, "attn_q"), embedding, embedding);
  out.k = load.linear(layer_tensor(index, "attn_k"), embedding, embedding);
  out.v = load.linear(layer_tensor(index, "attn_v"), embedding, embedding);
  out.output = load.linear(layer_tensor(index, "attn_output"), embedding, embedding);
  out.params = {.num_heads = config_.num_heads,
                .num_kv_heads = config_.num_kv_heads,
                .head_dim = config_.head_dim,
                .scale = config_.attention_scale,
                .causal = false};
  return out;
}

void Encoder::gather_embeddings(const Tensor& x, const StepInput& step) {
  Activations& a = *activations_;
  a.embedded = a.delta.view(static_cast<int64_t>(step.embedding_rows.size()));
  if (!step.embedding_rows.empty()) backend_.gather_rows(x, step.embedding_rows, a.embedded);
}

Tensor Encoder::classify(std::span<const int32_t> rows) {
  if (num_classes() == 0 || rows.empty()) return {};
  Activations& a = *activations_;
  const auto num_rows = static_cast<int64_t>(rows.size());
  Tensor first = a.last.view(num_rows);
  backend_.gather_rows(a.embedded, rows, first);
  if (pooler_.weight) {
    const Tensor pooled = a.attended.view(num_rows);
    backend_.linear(first, pooler_.task(pooled));
    backend_.soft_cap(pooled, 1.0F);  // which is tanh
    first = pooled;
  }
  Tensor classes = a.logits.view(num_rows);
  classes.cols = num_classes();
  backend_.linear(first, classes_.task(classes));
  return classes;
}

WeightWork Encoder::weight_work() const {
  const auto elements = [](const Matrix& matrix) { return matrix.rows() * matrix.cols(); };
  WeightWork work;
  // Of an embedding a step reads a row a token, which is next to nothing.
  work.layer_bytes = info().weight_bytes - embedding_.table->bytes();
  work.layer_macs = loaded().matrix_elements - elements(*embedding_.table);
  return work;
}

}  // namespace headrace
