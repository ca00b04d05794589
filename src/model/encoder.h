// What encoders have in common around their layers: the config, attention that sees all of a text,
// and the classification head of those that rank. An architecture adds its layers and its forward
// pass. A step has all rows of each of its texts.
#pragma once

#include "model/blocks/attention.h"
#include "model/loaded_model.h"

namespace headrace {

/// Sizes, heads, norm and pooling of an encoder; bidirectional, without rotary embedding. Keys: the
/// GGUF specification, and llama.cpp's pooling_type.
ModelConfig read_encoder_config(ConfigReader& reader, std::string_view architecture);

class Encoder : public LoadedModel {
 public:
  void reserve(int64_t max_rows, int64_t max_logit_rows) final {
    activations_->reserve(max_rows, max_logit_rows);
  }
  WeightWork weight_work() const final;
  Tensor classify(std::span<const int32_t> rows) final;
  int64_t num_classes() const final { return classes_.weight ? classes_.weight->rows() : 0; }

 protected:
  /// Loads "token_embd", and where they are "cls" (the pooler: a product and tanh) and "cls.output"
  /// (the classes).
  Encoder(ModelConfig config, Loader& load);

  /// q, k, v and output projections of layer `index` under GGUF's names.
  AttentionBlock load_attention(Loader& load, int64_t index) const;

  /// Ends a step: what it wants of x [rows, embedding], the last layer's output. Overwrites delta.
  void gather_embeddings(const Tensor& x, const StepInput& step);

 private:
  Linear pooler_;   ///< [embedding, embedding], or without a weight
  Linear classes_;  ///< [classes, embedding], or without a weight
};

}  // namespace headrace
