// What decoder-only models have in common around their layers: config, cache specs, buffers and the
// tensors outside the layers. An architecture adds its layers and its forward pass. What a model
// caches and how wide its buffers are is known from its config alone, before anything is loaded.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/blocks/activations.h"
#include "model/blocks/attention.h"
#include "model/blocks/embedding.h"
#include "model/blocks/positions.h"
#include "model/cache_groups.h"
#include "model/config.h"
#include "model/loader.h"
#include "model/model.h"

namespace headrace {

/// What each layer of a model of this config caches, in order.
std::vector<CacheSpec> cache_specs_of(const ModelConfig& config);

/// The buffers of a model of this config with `vocab_size` tokens.
ActivationSizes activation_sizes_of(const ModelConfig& config, int64_t vocab_size);

class Decoder : public Model {
 public:
  const ModelInfo& info() const final { return info_; }
  Backend& backend() const final { return backend_; }
  std::span<const CacheSpec> cache_specs() const final { return cache_specs_; }
  void reserve(int64_t max_rows, int64_t max_logit_rows) final;
  void set_context(int64_t max_tokens) final;
  std::string key_variant(int64_t max_tokens) const final;

  WeightWork weight_work() const final;
  Result<void> check_weights() const final;

  /// Fills in what is known once everything is loaded. `files`: where matrices are read from in
  /// every step; null: nowhere.
  void set_loaded(ModelInfo info, const LoadedWeights& loaded, const Checkpoint* files) {
    info_ = std::move(info);
    loaded_ = loaded;
    files_ = files;
  }
  int64_t vocab_size() const { return embedding_.table ? embedding_.table->rows() : 0; }

 protected:
  /// Loads "token_embd", "output_norm" and "output" (absent: tied to the embedding), and the
  /// frequencies of the rotary embedding.
  Decoder(ModelConfig config, Loader& load);

  /// A norm of the config's kind over the embedding's features.
  Norm load_norm(Loader& load, const std::string& name) const;

  /// q, k, v and output projections of layer `index` under GGUF's names, without norms. Where the
  /// file has "attn_qkv", q, k and v are taken out of it.
  AttentionBlock load_attention(Loader& load, int64_t index) const;

  /// Norms of queries and keys over all heads together, "attn_q_norm" and "attn_k_norm".
  void load_row_norms(Loader& load, int64_t index, AttentionBlock& attention) const;

  /// The angles of layer `index` in this step, after turn(); without data where it does not rotate.
  const Tensor& angles_of(size_t index) const;
  /// Computes them, at the begin of a step.
  void turn(std::span<const int32_t> positions);

  /// The cache of layer `index` in this step and its place there.
  const StepCache& cache_of(const StepInput& step, size_t index) const {
    return step.caches[static_cast<size_t>(groups_.layers[index].group)];
  }
  static bool is_unwanted(const StepInput& step) {
    return step.is_unwanted != nullptr && (*step.is_unwanted)();
  }
  int64_t layer_in_group(size_t index) const { return groups_.layers[index].layer_in_group; }

  ModelConfig config_;
  Backend& backend_;
  Embedding embedding_;
  OutputHead head_;
  std::optional<Rope> rope_;         ///< layers without a window, or all; none: no rotation
  std::optional<Rope> rope_window_;  ///< window layers, where it differs
  std::unique_ptr<Activations> activations_;

 private:
  bool is_window(size_t index) const { return config_.is_window_layer[index]; }

  std::vector<CacheSpec> cache_specs_;
  Tensor angles_, window_angles_;  ///< of the step
  CacheGroups groups_;
  ModelInfo info_;
  LoadedWeights loaded_;
  const Checkpoint* files_ = nullptr;
};

/// "blk.<index>.<name>".
std::string layer_tensor(int64_t index, std::string_view name);

}  // namespace headrace
