// The operations that models are written with. A backend owns packed weights, activations and KV
// storage, and runs the operations eagerly. Must not know models, files or requests.
//
// Shapes: activations are [rows, features] f32; a row is one token of the step. Every operation
// computes a row from that row alone (attention: from its own sequence), so that results do not
// depend on company; see docs/architecture.md, "Batch invariance".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backend/activation.h"
#include "backend/kv_view.h"
#include "backend/low_rank.h"
#include "backend/sample_rows.h"
#include "headrace/result.h"
#include "headrace/token.h"
#include "quant/format.h"
#include "tensor/tensor.h"

namespace headrace {

/// A weight matrix as the checkpoint holds it, to be packed. Output row i is made from source row
/// `row_order[i]` (empty: i). `data` is only read during Backend::pack, unless `data_stays`.
struct WeightView {
  Format format = Format::f32;
  int64_t rows = 0;  ///< output features
  int64_t cols = 0;  ///< input features
  std::span<const std::byte> data;
  std::span<const int32_t> row_order;
  std::string name;  ///< for errors
  /// `data` outlives the matrix, which keeps no copy of it: products pack what they read of it,
  /// each time. Results are those of a packed matrix, bit for bit.
  bool data_stays = false;
  /// May be empty. Told which parts of `data` will not be read again, while packing goes on, so
  /// that file and packed weights need not be in memory both. Called on the packing thread.
  std::function<void(std::span<const std::byte> part)> release = {};
  /// May be empty. Writes a row of `data`, by its number there, in `format`, which the data itself
  /// is not in then: it has as many equal rows, and does not stay. Called on all threads that pack.
  std::function<Result<void>(int64_t row, std::byte* out)> make_row = {};
  /// linear_top will be asked for: the backend may pack what makes it fast.
  bool finds_top = false;
  /// Products are of float32 activations, whatever the format: for small matrices whose results
  /// decide something.
  bool is_exact = false;
};

/// A weight matrix [rows, cols] in a backend's own packing.
class Matrix {
 public:
  virtual ~Matrix() = default;
  virtual int64_t rows() const = 0;
  virtual int64_t cols() const = 0;
  virtual Format format() const = 0;
  virtual size_t bytes() const = 0;  ///< memory it occupies, or its data where that stays
  /// Of these, what linear reads, and what linear_top of one row reads at the least.
  virtual size_t linear_bytes() const { return bytes(); }
  virtual size_t top_bytes() const { return linear_bytes(); }
};

/// What a group of products reads: rows of x, or what is made of them on the way, at most one of
/// two things.
struct LinearInput {
  LinearInput() = default;
  LinearInput(const Tensor& rows) : x(rows) {}  // implicit: most inputs are tensors

  Tensor x;  ///< [rows, cols]
  /// Where data != nullptr, [1, cols]: rows become their RMS norm with this weight.
  Tensor norm;
  float norm_eps = 0.0F;
  /// With `norm`: rows become their layer norm instead, with this bias [1, cols], or none.
  bool centers = false;
  Tensor norm_bias;
  /// Where data != nullptr, [rows, cols]: rows become activation(x) * up.
  Tensor up;
  /// Without `up`: rows become activation(x).
  bool activates = false;
  Activation activation = Activation::silu;
};

/// One product of a group that shares its input: out = scale * (x W^T + bias), and what adapters
/// add to some of its rows.
struct LinearTask {
  const Matrix* weight = nullptr;
  Tensor bias;  ///< [1, rows of weight], or data == nullptr
  Tensor out;   ///< [rows of x, rows of weight]
  Tensor add_to =
      {};  ///< where data != nullptr, of the shape of out: += out; no input of the group
  float scale = 1.0F;
  /// By index; those that share an input share `adapter_step`, and kMostAdapted of them have any.
  std::span<const LowRank> adapters = {};
  const AdapterStep* adapter_step = nullptr;  ///< null: no row uses any
};

/// A gated feed-forward block: down(activation(gate(x)) * up(x)). Biases may lack data.
struct Expert {
  const Matrix* gate = nullptr;  ///< [length, features]
  const Matrix* up = nullptr;    ///< [length, features]
  const Matrix* down = nullptr;  ///< [outputs, length]
  Tensor gate_bias, up_bias, down_bias;
};

/// Which experts a row uses, and how much: the num_active of the largest probabilities (ties: the
/// lower index), weighed by these.
struct ExpertRouting {
  enum class Gating : uint8_t {
    softmax,  ///< probabilities are the softmax of a row's scores
    sigmoid,  ///< each is the sigmoid of its score
  };
  int64_t num_active = 1;
  Gating gating = Gating::softmax;
  bool normalises = false;  ///< weights are divided by their sum,
  float scale = 1.0F;       ///< then multiplied by this
};

/// A mixture of experts: out = scale * (sum of weight * expert(x) over a row's experts, the largest
/// weight first, + shared(x)).
struct MoeTask {
  LinearInput input;                ///< [rows, features]: what the experts read
  Tensor scores;                    ///< [rows, experts]: of the router; become probabilities
  std::span<const Expert> experts;  ///< of one shape
  ExpertRouting routing;
  Activation activation = Activation::silu;
  const Expert* shared = nullptr;  ///< of all rows; may be null
  /// [rows, 1]: what it gives is multiplied by their sigmoid; data == nullptr: by 1.
  Tensor shared_scores;
  Tensor out;          ///< [rows, outputs]
  Tensor add_to = {};  ///< where data != nullptr, of the shape of out: += out
  float scale = 1.0F;

  // Memory for what lies between.
  Tensor gate, up;                ///< [rows * num_active, length]
  Tensor shared_gate, shared_up;  ///< [rows, length of the shared expert]
  Tensor parts;                   ///< [rows * (num_active + 1), outputs]; without shared: + 0
};

/// Queries, keys and values as their products left them, and what they still need.
struct QkvTask {
  Tensor q;     ///< [rows, num_heads * head_dim]
  Tensor k, v;  ///< [rows, num_kv_heads * head_dim]
  Tensor
      q_norm;  ///< [1, head_dim], the weight of an RMS norm over each head; data == nullptr: none
  Tensor k_norm;
  float norm_eps = 0.0F;
  Tensor angles;  ///< of Backend::rope_angles; data == nullptr: heads are not rotated
};

/// Rotary frequencies: pair i of a token at position p turns by p * inv_freq[i]; both outputs are
/// multiplied by `attention_factor` (YaRN; otherwise 1). Features past 2 * inv_freq.size() of a
/// head stay as they are.
struct RopeTable {
  std::span<const float> inv_freq;
  float attention_factor = 1.0F;
};

struct AttentionParams {
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 1.0F;
  float soft_cap = 0.0F;  ///< 0: none; else scores become cap * tanh(score / cap)
  int64_t window = 0;     ///< 0: none; else key j is visible to query i only if i - j < window
  bool causal = true;
};

/// KV storage of one cache group: num_blocks blocks over num_layers layers of equal layout.
class KvStorage {
 public:
  virtual ~KvStorage() = default;
  virtual KvView layer(int64_t layer_in_group) const = 0;
  virtual size_t bytes() const = 0;
  /// Copies block `from`, the pages of all layers, to block `to`, before the operations that
  /// follow.
  virtual void copy_block(int32_t from, int32_t to) = 0;

  // A block outside of the backend: the pages of its layers, one after the other, each of
  // KvPageLayout::page_bytes() and laid out as kv_view.h says.
  /// The first `num_tokens` slots of a block; the others are zeros, whatever was there. Waits for
  /// the operations before it. `out`: [num_layers * page_bytes].
  virtual void read_block(int32_t block, int64_t num_tokens, std::span<std::byte> out) const = 0;
  /// Before the operations that follow.
  virtual void write_block(int32_t block, std::span<const std::byte> in) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// For people and for the fingerprint: "cpu avx512 (VNNI)".
  virtual std::string description() const = 0;
  virtual int num_threads() const = 0;

  // Limits of the device with this backend's threads, measured when asked for (a fraction of a
  // second): what operations could reach if nothing held them up.
  /// Multiply-adds a second of the instruction that does most of them.
  virtual double measure_peak_macs() = 0;
  /// The name of that instruction, "vpdpbusd".
  virtual std::string peak_instruction() const = 0;
  /// Bytes a second of reading `bytes` of memory over and over, for `seconds` or until all was read
  /// a few times, whichever is longer. Throws std::bad_alloc.
  virtual double measure_read_rate(size_t bytes, double seconds) = 0;

  // Memory. These throw std::bad_alloc where the machine has no more.
  virtual Result<std::unique_ptr<Matrix>> pack(const WeightView& weight) = 0;
  virtual Buffer allocate(DType dtype, int64_t rows, int64_t cols) = 0;
  virtual Buffer upload(std::span<const float> values) = 0;  ///< [1, n]
  virtual std::unique_ptr<KvStorage> allocate_kv(const KvPageLayout& layout, int64_t num_layers,
                                                 int64_t num_blocks) = 0;
  /// Memory for linear() with what was packed and inputs of up to max_rows rows and max_cols
  /// columns; without it the first calls make it. Throws std::bad_alloc.
  virtual void reserve_rows(int64_t max_rows, int64_t max_cols) = 0;
  /// Memory for sample_rows of that many rows at once; without it the first calls make it. Throws
  /// std::bad_alloc.
  virtual void reserve_samples(int64_t max_rows, int64_t cols) = 0;
  /// Copies one row of f32 to the host; waits for the operations before it.
  virtual void read_row(const Tensor& x, int64_t row, std::span<float> out) = 0;

  // Operations.
  /// out[r] = scale * table[ids[r]].
  virtual void embed(const Matrix& table, std::span<const TokenId> ids, float scale,
                     const Tensor& out) = 0;
  /// out[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight. x and out may be the same.
  virtual void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) = 0;
  /// The same over each head of `head_dim` features, in place; weight is [1, head_dim].
  virtual void head_rms_norm(const Tensor& x, int64_t head_dim, const Tensor& weight,
                             float eps) = 0;
  /// out[r] = (x[r] - mean) / sqrt(variance + eps) * weight (+ bias), both of x[r]; bias may lack
  /// data. x and out may be the same.
  virtual void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                          const Tensor& out) = 0;
  /// The same over each head of `head_dim` features, in place, without a bias; weight is
  /// [1, x.cols], each head's own.
  virtual void head_layer_norm(const Tensor& x, int64_t head_dim, const Tensor& weight,
                               float eps) = 0;
  /// Products that share their input (q, k, v; gate, up).
  void linear(const LinearInput& input, std::span<const LinearTask> tasks);
  void linear(const LinearInput& input, const LinearTask& task) {
    linear(input, std::span(&task, 1));
  }
  /// As linear, bit for bit, in all outputs of a row that are no smaller than its num_top-th
  /// largest (num_top >= 1; ties: all of them). Others may be -Inf instead, if all outputs are
  /// finite.
  void linear_top(const LinearInput& input, const LinearTask& task, int32_t num_top);
  /// A mixture of experts. Rows are grouped by expert, of which only those that some row uses are
  /// read. Waits for the scores.
  virtual void moe(const MoeTask& task) = 0;
  /// angles[r] = (cos 0, ..., cos n-1, sin 0, ..., sin n-1) of positions[r], n pairs; times the
  /// attention factor. Once a step, shared by its layers.
  virtual void rope_angles(const RopeTable& table, std::span<const int32_t> positions,
                           const Tensor& angles) = 0;
  /// Rotates each head of x in place: features i and i + n are a pair. Where a model pairs 2i and
  /// 2i + 1, the rows of its weights are reordered. Angles without data leave x as it is.
  virtual void rope(const Tensor& x, const Tensor& angles, int64_t head_dim) = 0;
  /// Stores k and v [rows, num_kv_heads * head_dim] at each row's position.
  virtual void kv_write(const Tensor& k, const Tensor& v, const KvView& view,
                        std::span<const KvSequence> sequences) = 0;
  /// What lies between the products and attention: norms of the heads of q and k, their rotation
  /// and kv_write. q is changed in place; k and v may be. The default
  /// does one after the other.
  virtual void finish_qkv(const QkvTask& task, const KvView& view,
                          std::span<const KvSequence> sequences);
  /// Attention of each row to the keys of its sequence up to its own position (all of them already
  /// written). q, out: [rows, num_heads * head_dim].
  virtual void attention(const Tensor& q, const KvView& view, const AttentionParams& params,
                         std::span<const KvSequence> sequences, const Tensor& out) = 0;
  /// out = activation(gate) * up. May be in place.
  virtual void gated_activation(const Tensor& gate, const Tensor& up, Activation activation,
                                const Tensor& out) = 0;
  /// x += delta.
  virtual void add(const Tensor& x, const Tensor& delta) = 0;
  /// x[r] += the RMS norm of delta[r] with this weight; changes delta.
  virtual void add_rms_norm(const Tensor& x, const Tensor& delta, const Tensor& weight,
                            float eps) = 0;
  /// x = cap * tanh(x / cap).
  virtual void soft_cap(const Tensor& x, float cap) = 0;
  /// x to [-limit, limit]; NaN stays.
  virtual void clamp(const Tensor& x, float limit) = 0;
  /// x[r] *= 1 / (1 + e^-gates[r]); gates: [rows, 1].
  virtual void gate_rows(const Tensor& x, const Tensor& gates) = 0;
  /// out[i] = x[rows[i]].
  virtual void gather_rows(const Tensor& x, std::span<const int32_t> rows, const Tensor& out) = 0;
  /// The id of each row's largest value; ties go to the smaller id. NaN anywhere in a row: -1.
  virtual void argmax_rows(const Tensor& logits, std::span<TokenId> out) = 0;
  /// Edits rows of logits in place, and answers what is asked of each: queries[r] about row r into
  /// out[r]. Waits for the answers.
  virtual void sample_rows(const Tensor& logits, std::span<const RowQuery> queries,
                           std::span<RowSummary> out) = 0;

 protected:
  /// Backend::linear without what adapters add.
  virtual void multiply(const LinearInput& input, std::span<const LinearTask> tasks) = 0;
  /// The same of linear_top. The default computes all.
  virtual void multiply_top(const LinearInput& input, const LinearTask& task, int32_t num_top);

 private:
  void add_adapter(const LinearInput& input, std::span<const LinearTask> tasks,
                   const AdapterRows& rows);
};

}  // namespace headrace
