// A loaded model: its config, its cache needs and its forward pass. Must not know requests or
// sampling.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/quantization.h"
#include "headrace/model.h"
#include "headrace/result.h"
#include "model/adapters/adapter.h"

namespace headrace {

/// What one layer caches. Layers of equal spec form a cache group.
struct CacheSpec {
  enum class Kind : uint8_t { none, paged, window };
  Kind kind = Kind::paged;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  ///< for Kind::window: keys further back than this are never read

  bool operator==(const CacheSpec&) const = default;
};

/// A cache group in a step: where its layers' pages are and which sequences have rows.
struct StepCache {
  std::span<const KvView> layers;  ///< by index within the group
  std::span<const KvSequence> sequences;
};

/// One step's input, ready for a model.
struct StepInput {
  std::span<const TokenId> tokens;      ///< one a row
  std::span<const int32_t> positions;   ///< absolute, one a row
  std::span<const int32_t> logit_rows;  ///< rows whose logits are wanted, ascending
  /// Rows whose final vectors are wanted, ascending: Model::embeddings().
  std::span<const int32_t> embedding_rows{};
  /// One a row: 1 for the second text of a pair, else 0. Empty: all 0. Encoders alone look at them.
  std::span<const int32_t> token_types{};
  std::span<const StepCache> caches;        ///< by cache group
  std::span<const AdapterRows> adapters{};  ///< which rows use which; of those that were loaded
  /// If positive: of each row's logits only those no smaller than the num_top-th largest are looked
  /// at; others may be -Inf instead.
  int32_t num_top = 0;
  /// Asked before each layer; true: nobody wants the step any more. Null: never.
  const std::function<bool()>* is_unwanted = nullptr;
};

/// What a model's weights cost a step: packed bytes that must be read, multiply-adds of a row.
struct WeightWork {
  uint64_t layer_bytes = 0;  ///< by a step of one row
  uint64_t head_bytes = 0;   ///< by a step that wants logits, besides
  uint64_t top_bytes = 0;    ///< the least instead, if it has one such row and wants its largest
  int64_t layer_macs = 0;    ///< for each row
  int64_t head_macs = 0;     ///< for each row that wants logits, besides
  // Mixtures of experts: of their bytes, those that one row reads are among layer_bytes.
  uint64_t expert_bytes = 0;  ///< of all experts
  double active_share = 1;    ///< of them, those of a row

  /// Of a step of that many rows, on average over choices of experts that do not depend on each
  /// other.
  double step_layer_bytes(int64_t rows) const;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;
  virtual WeightWork weight_work() const = 0;
  virtual Backend& backend() const = 0;
  /// One a layer, in order.
  virtual std::span<const CacheSpec> cache_specs() const = 0;

  /// Allocates activations for steps of up to max_rows rows and max_logit_rows logits.
  virtual void reserve(int64_t max_rows, int64_t max_logit_rows) = 0;

  /// Sequences will have up to that many tokens (longrope asks). Before the first step of whoever
  /// runs the model.
  virtual void set_context(int64_t /*max_tokens*/) {}
  /// Names what of set_context changes keys in the cache; empty: nothing. Keys of one variant mean
  /// nothing to another.
  virtual std::string key_variant(int64_t /*max_tokens*/) const { return {}; }

  /// Runs all layers. Returns logits [logit_rows.size(), vocab], valid until the next call; none
  /// where the step was given up because it was unwanted.
  virtual Tensor forward(const StepInput& step) = 0;

  /// Of the last step, the vectors of its embedding rows after the last norm:
  /// [embedding_rows.size(), embedding_length], valid until the next call of forward.
  virtual Tensor embeddings() const = 0;
  /// What the classification head says of some rows of embeddings(): [rows.size(), num_classes],
  /// valid until the next call of it. Models without one (ModelInfo::num_classes): nothing.
  virtual Tensor classify(std::span<const int32_t> /*rows*/) { return {}; }

  /// To be asked after a step, before anything of it is used: whether the weights that it read were
  /// those of the model. Error: corrupt_data, where they are read from files and one was cut or
  /// written meanwhile.
  virtual Result<void> check_weights() const = 0;
};

struct LoadModelOptions {
  /// Whether weights are packed; else matrices stay in the checkpoint's files, but for those that
  /// are made (CheckpointTensor::is_made), and each step packs what it reads, to the same results.
  bool pack = true;
  /// Matrices of 16- and 32-bit numbers are brought to this type while they are packed; null: they
  /// stay as they are. Needs `pack`.
  const Quantization* quantize = nullptr;
  std::span<const Adapter> adapters{};  ///< that its rows may use
  std::string name;                     ///< what users call it
  std::vector<TokenId> end_tokens;  ///< as the tokenizer knows them; become ModelInfo::end_tokens
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;  ///< may be empty
};

/// Loads the checkpoint's weights and the adapters into the backend; checkpoint and backend must
/// outlive the model. Errors: mismatch (an adapter of another model); unsupported (architecture,
/// rope type, a tensor that nothing reads), corrupt_data (missing or misshapen tensors, named; a
/// weight that cannot be quantised), resource_exhausted.
Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint, Backend& backend,
                                          const LoadModelOptions& options);

}  // namespace headrace
