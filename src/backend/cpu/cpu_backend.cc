// See cpu_backend.h. Checks shapes, shares rows out over the threads and calls kernels.
#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "backend/cpu/attention.h"
#include "backend/cpu/context.h"
#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/kv_storage.h"
#include "backend/cpu/limits.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/linear_input.h"
#include "backend/cpu/matrix.h"
#include "backend/cpu/moe.h"
#include "backend/cpu/row_sampler.h"
#include "backend/cpu/top_search.h"

namespace headrace {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const KernelTable& kernels, std::shared_ptr<ThreadPool> pool, bool searches_top)
      : context_(kernels, std::move(pool)), searches_top_(searches_top) {}

  std::string description() const override { return "cpu " + std::string(context_.kernels.name); }
  int num_threads() const override { return context_.pool.num_threads(); }

  double measure_peak_macs() override { return measure_cpu_peak(context_); }
  std::string peak_instruction() const override { return context_.kernels.peak_instruction; }
  double measure_read_rate(size_t bytes, double seconds) override {
    return measure_cpu_read_rate(context_, bytes, seconds);
  }

  Result<std::unique_ptr<Matrix>> pack(const WeightView& weight) override {
    WeightView view = weight;
    view.finds_top = view.finds_top && searches_top_ && view.cols > 0 &&
                     view.rows >= context_.kernels.least_searched / view.cols;
    HEADRACE_ASSIGN(auto matrix,
                    CpuMatrix::pack(view, context_.pool, packing_for(context_.kernels), weights_));
    context_.reserve_panels(matrix->scratch_bytes());
    forms_.add(matrix->input_form());
    if (matrix->coarse_bounds() != nullptr) search_.reserve(matrix->rows(), matrix->cols());
    return std::unique_ptr<Matrix>(std::move(matrix));
  }

  Buffer allocate(DType dtype, int64_t rows, int64_t cols) override {
    return Buffer(dtype, rows, cols);
  }

  Buffer upload(std::span<const float> values) override {
    Buffer buffer(DType::f32, 1, static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), buffer.view().f32());
    return buffer;
  }

  std::unique_ptr<KvStorage> allocate_kv(const KvPageLayout& layout, int64_t num_layers,
                                         int64_t num_blocks) override {
    return allocate_cpu_kv(layout, num_layers, num_blocks);
  }

  void reserve_rows(int64_t max_rows, int64_t max_cols) override {
    reserve_linear(context_, forms_, max_rows, max_cols);
  }

  void reserve_samples(int64_t max_rows, int64_t cols) override {
    sampler_.reserve(max_rows, cols);
  }

  void read_row(const Tensor& x, int64_t row, std::span<float> out) override {
    HEADRACE_CHECK(row >= 0 && row < x.rows);
    HEADRACE_CHECK_EQ(static_cast<int64_t>(out.size()), x.cols);
    std::copy_n(x.f32(row), x.cols, out.data());
  }

  void embed(const Matrix& table, std::span<const TokenId> ids, float scale,
             const Tensor& out) override {
    HEADRACE_CHECK_EQ(out.cols, table.cols());
    HEADRACE_CHECK_EQ(out.rows, static_cast<int64_t>(ids.size()));
    const auto& matrix = static_cast<const CpuMatrix&>(table);
    context_.for_rows(out.rows, 4 * out.cols, [&](int64_t r) {
      matrix.decode_row(ids[static_cast<size_t>(r)], out.f32(r));
      if (scale != 1.0F) context_.kernels.scale(out.f32(r), scale, out.cols, out.f32(r));
    });
  }

  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    HEADRACE_CHECK_EQ(weight.cols, x.cols);
    check_same_shape(x, out);
    context_.for_rows(x.rows, x.cols, [&](int64_t r) {
      context_.kernels.rms_norm(x.f32(r), weight.f32(), x.cols, eps, out.f32(r));
    });
  }

  void head_rms_norm(const Tensor& x, int64_t head_dim, const Tensor& weight, float eps) override {
    HEADRACE_CHECK_EQ(weight.cols, head_dim);
    HEADRACE_CHECK_EQ(x.cols % head_dim, 0);
    context_.for_rows(x.rows, x.cols, [&](int64_t r) {
      for (int64_t i = 0; i < x.cols; i += head_dim) {
        context_.kernels.rms_norm(x.f32(r) + i, weight.f32(), head_dim, eps, x.f32(r) + i);
      }
    });
  }

  void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                  const Tensor& out) override {
    HEADRACE_CHECK_EQ(weight.cols, x.cols);
    if (bias.data != nullptr) HEADRACE_CHECK_EQ(bias.cols, x.cols);
    check_same_shape(x, out);
    const float* bias_row = bias.data != nullptr ? bias.f32() : nullptr;
    context_.for_rows(x.rows, 2 * x.cols, [&](int64_t r) {
      context_.kernels.layer_norm(x.f32(r), weight.f32(), bias_row, x.cols, eps, out.f32(r));
    });
  }

  void head_layer_norm(const Tensor& x, int64_t head_dim, const Tensor& weight,
                       float eps) override {
    HEADRACE_CHECK_EQ(weight.cols, x.cols);
    HEADRACE_CHECK_EQ(x.cols % head_dim, 0);
    context_.for_rows(x.rows, 2 * x.cols, [&](int64_t r) {
      for (int64_t i = 0; i < x.cols; i += head_dim) {
        float* head = x.f32(r) + i;
        context_.kernels.layer_norm(head, weight.f32() + i, nullptr, head_dim, eps, head);
      }
    });
  }

  void multiply(const LinearInput& input, std::span<const LinearTask> tasks) override {
    cpu_linear(context_, input, tasks);
  }

  void multiply_top(const LinearInput& input, const LinearTask& task, int32_t num_top) override {
    if (!search_.run(input, task, num_top)) cpu_linear(context_, input, std::span(&task, 1));
  }

  void moe(const MoeTask& task) override { moe_.run(task); }

  void rope_angles(const RopeTable& table, std::span<const int32_t> positions,
                   const Tensor& angles) override {
    const auto num_pairs = static_cast<int64_t>(table.inv_freq.size());
    HEADRACE_CHECK_EQ(angles.cols, 2 * num_pairs);
    HEADRACE_CHECK_EQ(angles.rows, static_cast<int64_t>(positions.size()));
    context_.for_rows(angles.rows, 100 * num_pairs, [&](int64_t r) {
      float* out = angles.f32(r);
      const auto position = static_cast<float>(positions[static_cast<size_t>(r)]);
      for (int64_t i = 0; i < num_pairs; ++i) {
        // The angle is rounded to float32 first, as models are trained with.
        const double angle = position * table.inv_freq[static_cast<size_t>(i)];
        out[i] = static_cast<float>(std::cos(angle)) * table.attention_factor;
        out[num_pairs + i] = static_cast<float>(std::sin(angle)) * table.attention_factor;
      }
    });
  }

  void rope(const Tensor& x, const Tensor& angles, int64_t head_dim) override {
    if (angles.data == nullptr) return;
    const int64_t num_pairs = angles.cols / 2;
    HEADRACE_CHECK_LE(2 * num_pairs, head_dim);
    HEADRACE_CHECK_EQ(x.cols % head_dim, 0);
    HEADRACE_CHECK_EQ(angles.rows, x.rows);
    context_.for_rows(x.rows, 2 * x.cols, [&](int64_t r) {
      const float* row_angles = angles.f32(r);
      for (int64_t i = 0; i < x.cols; i += head_dim) {
        context_.kernels.rope_neox(x.f32(r) + i, row_angles, row_angles + num_pairs, num_pairs);
      }
    });
  }

  void kv_write(const Tensor& k, const Tensor& v, const KvView& view,
                std::span<const KvSequence> sequences) override {
    cpu_kv_write(context_, k, v, view, sequences);
  }

  void finish_qkv(const QkvTask& task, const KvView& view,
                  std::span<const KvSequence> sequences) override {
    cpu_finish_qkv(context_, task, view, sequences);
  }

  void attention(const Tensor& q, const KvView& view, const AttentionParams& params,
                 std::span<const KvSequence> sequences, const Tensor& out) override {
    cpu_attention(context_, q, view, params, sequences, out);
  }

  void gated_activation(const Tensor& gate, const Tensor& up, Activation activation,
                        const Tensor& out) override {
    check_same_shape(gate, up);
    check_same_shape(gate, out);
    context_.for_rows(gate.rows, 2 * gate.cols, [&](int64_t r) {
      context_.kernels.activate(activation, gate.f32(r), up.f32(r), gate.cols, out.f32(r));
    });
  }

  void add(const Tensor& x, const Tensor& delta) override {
    check_same_shape(x, delta);
    context_.for_rows(x.rows, x.cols / 2,
                      [&](int64_t r) { context_.kernels.add(x.f32(r), delta.f32(r), x.cols); });
  }

  void add_rms_norm(const Tensor& x, const Tensor& delta, const Tensor& weight,
                    float eps) override {
    check_same_shape(x, delta);
    HEADRACE_CHECK_EQ(weight.cols, x.cols);
    context_.for_rows(x.rows, 2 * x.cols, [&](int64_t r) {
      context_.kernels.rms_norm(delta.f32(r), weight.f32(), x.cols, eps, delta.f32(r));
      context_.kernels.add(x.f32(r), delta.f32(r), x.cols);
    });
  }

  void soft_cap(const Tensor& x, float cap) override {
    context_.for_rows(x.rows, 2 * x.cols,
                      [&](int64_t r) { context_.kernels.soft_cap(x.f32(r), cap, x.cols); });
  }

  void clamp(const Tensor& x, float limit) override {
    HEADRACE_CHECK(limit >= 0);
    context_.for_rows(x.rows, x.cols / 2,
                      [&](int64_t r) { context_.kernels.clamp(x.f32(r), limit, x.cols); });
  }

  void gate_rows(const Tensor& x, const Tensor& gates) override {
    HEADRACE_CHECK_EQ(gates.rows, x.rows);
    HEADRACE_CHECK_EQ(gates.cols, 1);
    context_.for_rows(x.rows, x.cols / 2,
                      [&](int64_t r) { context_.kernels.gate(x.f32(r), *gates.f32(r), x.cols); });
  }

  void gather_rows(const Tensor& x, std::span<const int32_t> rows, const Tensor& out) override {
    HEADRACE_CHECK_EQ(out.rows, static_cast<int64_t>(rows.size()));
    HEADRACE_CHECK_EQ(out.cols, x.cols);
    for (int64_t r = 0; r < out.rows; ++r) {
      const int32_t from = rows[static_cast<size_t>(r)];
      HEADRACE_CHECK(from >= 0 && from < x.rows);
      std::copy_n(x.f32(from), x.cols, out.f32(r));
    }
  }

  void argmax_rows(const Tensor& logits, std::span<TokenId> out) override {
    sampler_.argmax(logits, out);
  }

  void sample_rows(const Tensor& logits, std::span<const RowQuery> queries,
                   std::span<RowSummary> out) override {
    sampler_.sample(logits, queries, out);
  }

 private:
  static void check_same_shape(const Tensor& a, const Tensor& b) {
    HEADRACE_CHECK_EQ(a.rows, b.rows);
    HEADRACE_CHECK_EQ(a.cols, b.cols);
  }

  CpuContext context_;
  RowSampler sampler_{context_};
  TopSearch search_{context_};
  CpuMoe moe_{context_};
  WeightMemory weights_;
  InputForms forms_;  ///< of what was packed
  bool searches_top_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options) {
  auto pool =
      options.pool ? options.pool : std::make_shared<ThreadPool>(options.num_threads, options.pin);
  return std::make_unique<CpuBackend>(kernel_table(options.isa), std::move(pool),
                                      options.searches_top);
}

std::unique_ptr<Backend> make_cpu_backend(const KernelTable& kernels, int num_threads, bool pin) {
  return std::make_unique<CpuBackend>(kernels, std::make_shared<ThreadPool>(num_threads, pin),
                                      true);
}

}  // namespace headrace
