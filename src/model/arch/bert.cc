// BERT and models of its shape (MiniLM, BGE, E5): encoders with learned positions, normed after
// each block. Source: arXiv:1810.04805, and transformers' modeling_bert. With a classification head
// (BertForSequenceClassification) they rank.
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/blocks/mlp.h"
#include "model/encoder.h"

namespace headrace {
namespace {

struct BertLayer {
  AttentionBlock attention;
  LayerNorm attention_norm;
  Mlp mlp;
  LayerNorm mlp_norm;
};

class Bert final : public Encoder {
 public:
  Bert(ModelConfig config, Loader& load) : Encoder(std::move(config), load) {
    const int64_t embedding = config_.embedding_length;
    const float eps = config_.norm_eps;
    positions_ = load.linear("position_embd", config_.context_length, embedding);
    token_types_ = load.table("token_types", embedding);
    embedding_norm_ = load.layer_norm("token_embd_norm", embedding, eps);
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      BertLayer& layer = layers_.emplace_back();
      layer.attention = load_attention(load, i);
      layer.attention_norm = load.layer_norm(layer_tensor(i, "attn_output_norm"), embedding, eps);
      layer.mlp = load_mlp(load, i, Activation::gelu);
      layer.mlp_norm = load.layer_norm(layer_tensor(i, "layer_output_norm"), embedding, eps);
    }
  }

  Tensor compute(const StepInput& step) override {
    Activations& a = *activations_;
    const auto rows = static_cast<int64_t>(step.tokens.size());
    const Tensor x = a.x.view(rows);
    const Tensor delta = a.delta.view(rows);

    embed(step, x, delta);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (is_unwanted(step)) return {};
      const BertLayer& layer = layers_[i];
      layer.attention.apply(backend_, x, {}, cache_of(step, i), layer_in_group(i), a, delta, x);
      layer.attention_norm.apply(backend_, x, x);
      layer.mlp.apply(backend_, x, a, delta, x);
      layer.mlp_norm.apply(backend_, x, x);
    }
    gather_embeddings(x, step);
    return {};
  }

 private:
  /// x = norm(word + position + type); delta is overwritten.
  void embed(const StepInput& step, const Tensor& x, const Tensor& delta) {
    embedding_.apply(backend_, step.tokens, x);
    backend_.embed(*positions_.weight, step.positions, 1.0F, delta);
    backend_.add(x, delta);
    types_.assign(step.tokens.size(), 0);
    if (token_types_->rows() > 1 && !step.token_types.empty()) {
      types_.assign(step.token_types.begin(), step.token_types.end());
    }
    backend_.embed(*token_types_, types_, 1.0F, delta);
    backend_.add(x, delta);
    embedding_norm_.apply(backend_, x, x);
  }

  Linear positions_;                     ///< [context, embedding], without a bias
  std::unique_ptr<Matrix> token_types_;  ///< [1 or 2, embedding]
  LayerNorm embedding_norm_;
  std::vector<BertLayer> layers_;
  std::vector<TokenId> types_;  ///< of the step, by row
};

constexpr std::array kBertNames = {
    HfName{"embeddings.word_embeddings", "token_embd"},
    HfName{"embeddings.position_embeddings", "position_embd"},
    HfName{"embeddings.token_type_embeddings", "token_types"},
    HfName{"embeddings.LayerNorm", "token_embd_norm"},
    HfName{"embeddings.position_ids", "", HfChange::skip},
    HfName{"encoder.layer.#.attention.self.query", "blk.#.attn_q"},
    HfName{"encoder.layer.#.attention.self.key", "blk.#.attn_k"},
    HfName{"encoder.layer.#.attention.self.value", "blk.#.attn_v"},
    HfName{"encoder.layer.#.attention.output.dense", "blk.#.attn_output"},
    HfName{"encoder.layer.#.attention.output.LayerNorm", "blk.#.attn_output_norm"},
    HfName{"encoder.layer.#.intermediate.dense", "blk.#.ffn_up"},
    HfName{"encoder.layer.#.output.dense", "blk.#.ffn_down"},
    HfName{"encoder.layer.#.output.LayerNorm", "blk.#.layer_output_norm"},
    // Only the classification head reads it.
    HfName{"pooler.dense", "", HfChange::skip},
};

constexpr std::array kBertHeadNames = {
    HfName{"pooler.dense", "cls"},
    HfName{"classifier", "cls.output"},
};

ModelConfig bert_config(ConfigReader& reader) {
  return read_encoder_config(reader, "bert");
}

std::unique_ptr<LoadedModel> load_bert(ModelConfig config, Loader& load) {
  return std::make_unique<Bert>(std::move(config), load);
}

void read_hf_bert(HfModel& model) {
  constexpr std::array<std::string_view, 1> kActivations = {"gelu"};
  constexpr std::array<std::string_view, 1> kPositions = {"absolute"};
  model.copy_int("context_length", "max_position_embeddings");
  model.copy_int("block_count", "num_hidden_layers");
  model.copy_int("embedding_length", "hidden_size");
  model.copy_int("feed_forward_length", "intermediate_size");
  model.copy_int("attention.head_count", "num_attention_heads");
  model.copy_float("attention.layer_norm_epsilon", "layer_norm_eps", 1e-12);
  model.expect_text("hidden_act", kActivations);
  model.expect_text("position_embedding_type", kPositions);
  model.expect_bool("is_decoder", false);
  model.add_names(kBertNames);
  const auto names = model.config().texts("architectures");
  if (!names.empty() && names.front() == "BertForSequenceClassification") {
    model.add_names(kBertHeadNames);
  }
}

}  // namespace

extern const Architecture bert_architecture{
    "bert",           {"BertModel", "BertForSequenceClassification"},
    RopeRows::halves, bert_config,
    load_bert,        read_hf_bert};

}  // namespace headrace
