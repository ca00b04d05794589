// What decoder-only models have in common around their layers: the embedding, the rotary embedding,
// attention, the output head, and the order in which a step runs through them. An architecture adds
// its layers.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/blocks/attention.h"
#include "model/blocks/positions.h"
#include "model/loaded_model.h"

namespace headrace {

/// A step on its way through the layers.
struct LayerStep {
  const StepInput& input;
  Activations& buffers;
  Tensor x;          ///< [rows, embedding]: the residual stream
  Tensor delta;      ///< likewise: what a block adds to x
  size_t index = 0;  ///< of the layer
};

class Decoder : public LoadedModel {
 public:
  void reserve(int64_t max_rows, int64_t max_logit_rows) final;
  void set_context(int64_t max_tokens) final;
  std::string key_variant(int64_t max_tokens) const final;
  WeightWork weight_work() const final;

 protected:
  /// Loads "token_embd", "output_norm" and "output" (absent: tied to the embedding), and the
  /// frequencies of the rotary embedding.
  Decoder(ModelConfig config, Loader& load);

  /// x [rows, embedding] = what the first layer reads; may overwrite scratch, of the shape of x.
  /// The rows of "token_embd", unless it is overridden.
  virtual void embed(const StepInput& step, const Tensor& x, const Tensor& scratch);

  /// Takes step.x through one layer.
  virtual void run_layer(const LayerStep& step) = 0;

  /// The attention block of a layer: delta [rows, embedding] = its result, of `in` likewise;
  /// add_to += it, or without data.
  void attend(const AttentionBlock& attention, const LinearInput& in, const LayerStep& step,
              const Tensor& add_to);

  /// A norm of the config's kind over the embedding's features.
  Norm load_norm(Loader& load, const std::string& name) const;

  /// q, k, v and output projections of layer `index` under GGUF's names, without norms. Where the
  /// file has "attn_qkv", q, k and v are taken out of it.
  AttentionBlock load_attention(Loader& load, int64_t index) const;

  /// Norms of queries and keys over each head, "attn_q_norm" and "attn_k_norm".
  void load_head_norms(Loader& load, int64_t index, AttentionBlock& attention) const;

  /// Norms of queries and keys over all heads together, "attn_q_norm" and "attn_k_norm".
  void load_row_norms(Loader& load, int64_t index, AttentionBlock& attention) const;

 private:
  Tensor compute(const StepInput& step) final;
  /// Computes the angles of a step.
  void turn(std::span<const int32_t> positions);
  /// Those of layer `index`; without data where it does not rotate.
  const Tensor& angles_of(size_t index) const;
  bool is_window(size_t index) const { return config_.is_window_layer[index]; }

  OutputHead head_;
  std::optional<Rope> rope_;         ///< layers without a window, or all; none: no rotation
  std::optional<Rope> rope_window_;  ///< window layers, where it differs
  Tensor angles_, window_angles_;    ///< of the step
};

}  // namespace headrace
