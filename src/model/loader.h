// Takes tensors out of a checkpoint and hands them, packed, to the blocks. Owns the list of what
// was read and the faults found. Must not know a particular model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "checkpoint/checkpoint.h"
#include "headrace/result.h"
#include "model/adapters/adapter_loader.h"
#include "model/blocks/embedding.h"
#include "model/blocks/linear.h"
#include "model/blocks/moe_config.h"
#include "model/blocks/norm.h"
#include "model/model.h"

namespace headrace {

/// In which order a file keeps the rows of the query and key projections of a head.
enum class RopeRows : uint8_t {
  halves,       ///< the pair of feature i is i + dims / 2
  interleaved,  ///< the pair of feature 2 i is 2 i + 1: GGUF files of the llama family
};

/// How the rows of one projection are split into heads, so that they can be put in order.
struct HeadRows {
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t rope_dims = 0;  ///< the first features of a head, which are rotated
};

/// For each output row of a projection in `halves` order, the row of a file in `interleaved` order.
std::vector<int32_t> deinterleave_rows(const HeadRows& heads);

/// What was loaded, in numbers.
struct LoadedWeights {
  int64_t matrix_elements = 0;  ///< of all matrices together
  int64_t expert_elements = 0;  ///< of experts' matrices
  uint64_t expert_bytes = 0;    ///< what these occupy
};

/// Tensors are asked for by their GGUF name without ".weight" or ".bias". Faults are collected, so
/// that a model is loaded as a plain list: after a fault an empty block is returned, and finish()
/// reports. Memory: a tensor's file pages are released as soon as it is packed; matrices that stay
/// in the file are not read at all.
class Loader {
 public:
  Loader(const Checkpoint& checkpoint, Backend& backend, RopeRows gguf_rope_rows,
         const LoadModelOptions& options);

  bool has(std::string_view name) const;
  /// Rows of a matrix, 1 of a vector; 0 if the file has none of that name.
  int64_t rows_of(std::string_view name) const;

  /// A projection [rows, cols], with its bias if the file has one.
  Linear linear(const std::string& name, int64_t rows, int64_t cols);
  /// Projections [part rows, cols] that a file keeps as one matrix, one above the other, in this
  /// order.
  std::vector<Linear> fused_linear(const std::string& name, std::span<const int64_t> part_rows,
                                   int64_t cols);
  /// A projection of an expert, which adapters do not change.
  Linear expert_linear(const std::string& name, int64_t rows, int64_t cols);
  /// A projection that is multiplied with activations of float32 (WeightView::is_exact).
  Linear exact_linear(const std::string& name, int64_t rows, int64_t cols);
  /// A projection [rows, cols] for each expert: of "<name>_exps", [experts, rows, cols], or of
  /// "<name>.E", one an expert. None after a fault.
  std::vector<Linear> experts(const std::string& name, const MoeConfig& config, int64_t rows,
                              int64_t cols);
  /// A query or key projection, its rows brought to `halves` order.
  Linear rope_linear(const std::string& name, const HeadRows& heads, int64_t cols);
  /// An output head; finds_top: see WeightView.
  Linear head(const std::string& name, int64_t rows, int64_t cols, bool finds_top);
  /// A matrix [any, cols]: the file decides how many rows (the vocabulary).
  std::unique_ptr<Matrix> table(const std::string& name, int64_t cols, bool finds_top = false);
  /// A matrix of exactly this shape that rows are taken of.
  std::unique_ptr<Matrix> matrix(const std::string& name, int64_t rows, int64_t cols);
  /// Such a matrix that is no file's: values of rows of `cols`, packed as they are.
  std::unique_ptr<Matrix> made_matrix(const std::string& name, std::span<const float> values,
                                      int64_t cols);
  RmsNorm norm(const std::string& name, int64_t features, float eps);
  /// With its bias if the file has one.
  LayerNorm layer_norm(const std::string& name, int64_t features, float eps);
  /// A matrix [heads, head_dim] of norms' weights.
  HeadLayerNorm head_layer_norm(const std::string& name, int64_t heads, int64_t head_dim,
                                float eps);
  /// The norms over each head of queries and of keys, balanced (head_norms.h). Of `shape`, head_dim
  /// and rope_dims count.
  std::pair<RmsNorm, RmsNorm> head_norms(const std::string& q_name, const std::string& k_name,
                                         const HeadRows& shape, float eps);
  /// A vector of exactly `size` positive numbers; empty after a fault.
  std::vector<float> divisors(const std::string& name, int64_t size);
  /// The same; empty if the file has none of that name.
  std::vector<float> optional_divisors(const std::string& name, int64_t size);

  /// The missing tensors; else the first fault; else the tensors that nothing read.
  Result<void> finish();

  Backend& backend() const { return backend_; }
  uint64_t packed_bytes() const { return packed_bytes_; }
  int64_t num_parameters() const { return num_parameters_; }
  const LoadedWeights& loaded() const { return loaded_; }
  const AdapterLoader& adapters() const { return adapters_; }

 private:
  /// Null, with the fault noted, unless the file has a tensor of this shape; marks it as read.
  const CheckpointTensor* take(const std::string& name, std::span<const int64_t> shape);
  /// How a matrix is packed: see WeightView.
  struct PackOptions {
    std::span<const int32_t> row_order = {};
    std::span<const int32_t> gguf_order = {};  ///< see AdaptedPart
    bool finds_top = false;
    bool is_exact = false;
    bool makes_logits = false;
    bool takes_adapters = true;
  };
  std::unique_ptr<Matrix> pack(const std::string& name, int64_t rows, int64_t cols,
                               const PackOptions& options);
  std::vector<Linear> stacked_experts(const std::string& name, const MoeConfig& config,
                                      int64_t rows, int64_t cols);
  Linear linear_in_order(const std::string& name, int64_t rows, int64_t cols,
                         const PackOptions& options);
  /// A vector of that size, uploaded; empty, with the fault noted, if the file has none.
  Buffer vector(const std::string& name, int64_t size);
  /// Packs rows of a tensor that was taken: `data` is theirs.
  std::unique_ptr<Matrix> pack_rows(const CheckpointTensor& tensor, int64_t rows,
                                    std::span<const std::byte> data, const PackOptions& options);
  /// A tensor's bytes; empty, with the fault noted, where they cannot be read.
  std::span<const std::byte> read(const CheckpointTensor& tensor);
  std::vector<float> decode(const CheckpointTensor& tensor);
  void done_with(const CheckpointTensor& tensor);
  void fail(ErrorCode code, const std::string& tensor, std::string message);

  const Checkpoint& checkpoint_;
  Backend& backend_;
  RopeRows gguf_rope_rows_;
  const LoadModelOptions& options_;
  AdapterLoader adapters_;
  std::vector<bool> was_read_;  // by index in checkpoint_.tensors()
  std::vector<std::string> missing_;
  std::optional<Error> error_;
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;
  uint64_t packed_bytes_ = 0;
  int64_t num_parameters_ = 0;
  LoadedWeights loaded_;
};

}  // namespace headrace
