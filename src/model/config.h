// The numbers that describe a model, whatever file they came from. Owns: ModelConfig and the typed
// reader of GGUF keys. Must not know tensors or backends.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/metadata.h"
#include "headrace/pooling.h"
#include "headrace/result.h"
#include "model/blocks/moe_config.h"
#include "model/blocks/positions.h"

namespace headrace {

enum class NormKind : uint8_t { rms, layer };

struct ModelConfig {
  std::string architecture;
  int64_t context_length = 0;
  int64_t num_layers = 0;
  int64_t embedding_length = 0;
  int64_t feed_forward_length = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  NormKind norm = NormKind::rms;
  float norm_eps = 0;
  float attention_scale = 0;          ///< scores are multiplied by it
  float attention_soft_cap = 0;       ///< 0: none
  float final_soft_cap = 0;           ///< 0: none
  int64_t window = 0;                 ///< keys a window layer sees; 0: no layer has a window
  std::vector<bool> is_window_layer;  ///< one a layer
  std::vector<bool> has_positions;    ///< layers that rotate; empty: all
  float embedding_scale = 1;          ///< the embedding is multiplied by it
  float residual_scale = 1;           ///< what a block adds is multiplied by it
  float logit_scale = 1;              ///< logits are multiplied by it
  float qkv_limit = 0;                ///< queries, keys and values are clamped to it; 0: not
  Activation activation = Activation::silu;
  bool is_parallel = false;               ///< attention and feed-forward read the same rows
  bool is_encoder = false;                ///< bidirectional, without a head that generates
  bool normalizes = true;                 ///< its embeddings have length 1
  std::optional<Pooling> pooling;         ///< of its embeddings; none: not said
  RopeConfig rope;                        ///< of layers without a window
  std::optional<RopeConfig> rope_window;  ///< of window layers, where it differs
  std::optional<MoeConfig> moe;           ///< of layers whose feed-forward block has experts
  std::vector<bool> is_moe_layer;         ///< one a layer; empty: none is

  bool operator==(const ModelConfig&) const = default;
  bool has_experts(size_t layer) const { return !is_moe_layer.empty() && is_moe_layer[layer]; }
};

/// Reads the keys "<architecture>.<name>" of a GGUF file. The first fault is kept and later reads
/// return their default, so that a config reads as a plain list; ask `error()` at the end.
class ConfigReader {
 public:
  ConfigReader(const Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), architecture_(architecture) {}

  /// An integer in [min, max]. Errors: missing, wrong type, out of range; each names the key.
  int64_t required_int(std::string_view name, int64_t min, int64_t max);
  int64_t optional_int(std::string_view name, int64_t min, int64_t max, int64_t missing);
  /// A finite number >= min.
  double required_float(std::string_view name, double min);
  double optional_float(std::string_view name, double min, double missing);
  bool optional_bool(std::string_view name, bool missing);
  std::string optional_string(std::string_view name, std::string_view missing);

  /// A flag for each of `num_layers` layers; empty if missing or a single integer. Errors: another
  /// count.
  std::vector<bool> layer_flags(std::string_view name, int64_t num_layers);

  /// The full key, for messages.
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }
  void fail(ErrorCode code, std::string_view name, std::string message);
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  std::optional<T> take(Result<std::optional<T>> result);
  /// An integer array; empty if missing or a single integer.
  std::vector<int64_t> optional_ints(std::string_view name);
  void missing(std::string_view name);
  int64_t in_range(std::string_view name, int64_t value, int64_t min, int64_t max);
  double in_range(std::string_view name, double value, double min);

  const Metadata& metadata_;
  std::string architecture_;
  std::optional<Error> error_;
};

/// What is wrong with a list that should have an entry for each layer.
std::string layer_count_fault(int64_t num_layers, size_t found);

/// How positions reach a model.
enum class PositionKind : uint8_t {
  rotary,
  absolute,  ///< added to the embedding: config.rope.dims is 0
};

/// The key "pooling_type": none where it is missing, or says none (0) or rank (4), which has its
/// classification head instead. Numbers: llama.cpp's llama_pooling_type.
std::optional<Pooling> read_pooling(ConfigReader& reader);

/// What all decoder-only transformers share: sizes, heads, norm, rotary embedding and its scaling.
/// Unequal key and value sizes and bidirectional models are `unsupported`. Experts: read_moe.h.
/// Keys: the GGUF specification, "Standardized key-value pairs".
ModelConfig read_decoder_config(ConfigReader& reader, std::string_view architecture,
                                NormKind norm = NormKind::rms,
                                PositionKind positions = PositionKind::rotary);

/// Sets is_window_layer by "attention.sliding_window_pattern": a flag for each layer, or a period,
/// of which the last layer sees everything. `default_period`: where the file says nothing.
void read_window_layers(ConfigReader& reader, ModelConfig& config, int64_t default_period);

}  // namespace headrace
