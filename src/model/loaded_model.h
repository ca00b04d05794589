// What all loaded models have in common: config, caches, buffers, and what is known of the weights.
// What a model caches and how wide its buffers are is known from its config alone, before anything
// is loaded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/blocks/activations.h"
#include "model/blocks/embedding.h"
#include "model/blocks/mlp.h"
#include "model/cache_groups.h"
#include "model/config.h"
#include "model/loader.h"
#include "model/model.h"

namespace headrace {

/// What each layer of a model of this config caches, in order.
std::vector<CacheSpec> cache_specs_of(const ModelConfig& config);

/// The buffers of a model of this config with `vocab_size` tokens.
ActivationSizes activation_sizes_of(const ModelConfig& config, int64_t vocab_size);

/// "blk.<index>.<name>".
std::string layer_tensor(int64_t index, std::string_view name);

class LoadedModel : public Model {
 public:
  const ModelInfo& info() const final { return info_; }
  Backend& backend() const final { return backend_; }
  std::span<const CacheSpec> cache_specs() const final { return cache_specs_; }
  Tensor forward(const StepInput& step) final;
  Tensor embeddings() const final { return activations_->embedded; }
  Result<void> check_weights() const final;

  /// Fills in what is known once everything is loaded. `files`: where matrices are read from in
  /// every step; null: nowhere.
  void set_loaded(ModelInfo info, const LoadedWeights& loaded, const Checkpoint* files) {
    info_ = std::move(info);
    loaded_ = loaded;
    files_ = files;
  }
  int64_t vocab_size() const { return embedding_.table ? embedding_.table->rows() : 0; }
  virtual int64_t num_classes() const { return 0; }  ///< see ModelInfo

 protected:
  LoadedModel(ModelConfig config, Loader& load)
      : config_(std::move(config)), backend_(load.backend()), adapters_(load.adapters().memory()) {}

  /// Model::forward, once adapters are in place.
  virtual Tensor compute(const StepInput& step) = 0;

  /// Memory for adapters, if there are any: see Model::reserve.
  void reserve_adapters(int64_t max_rows, int64_t max_logit_rows);

  /// Once `embedding_` is there.
  void set_up();

  /// The feed-forward block of layer `index`: "ffn_up" and "ffn_down".
  Mlp load_mlp(Loader& load, int64_t index, Activation activation) const;
  /// The gated one: "ffn_gate" too.
  GatedMlp load_gated_mlp(Loader& load, int64_t index, Activation activation) const;

  /// The cache of layer `index` in this step and its place there.
  const StepCache& cache_of(const StepInput& step, size_t index) const {
    return step.caches[static_cast<size_t>(groups_.layers[index].group)];
  }
  int64_t layer_in_group(size_t index) const { return groups_.layers[index].layer_in_group; }
  static bool is_unwanted(const StepInput& step) {
    return step.is_unwanted != nullptr && (*step.is_unwanted)();
  }
  const LoadedWeights& loaded() const { return loaded_; }

  ModelConfig config_;
  Backend& backend_;
  Embedding embedding_;
  std::unique_ptr<Activations> activations_;

 private:
  std::shared_ptr<AdapterMemory> adapters_;  ///< null: there are none
  std::vector<CacheSpec> cache_specs_;
  CacheGroups groups_;
  ModelInfo info_;
  LoadedWeights loaded_;
  const Checkpoint* files_ = nullptr;
};

}  // namespace headrace
