// The kernels of a backend against plain double arithmetic.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "app/selftest.h"
#include "backend/cpu/cpu_backend.h"
#include "base/random.h"
#include "quant/format.h"

namespace headrace {
namespace {

/// A stream of numbers that is the same on every machine.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : seed_(seed) {}
  uint64_t bits() { return counter_random(seed_, 0, 0, count_++); }
  /// Roughly normal with standard deviation 1.
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += to_unit_interval(bits());
    return static_cast<float>(sum);
  }
  std::vector<float> normals(int64_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& value : out) value = normal();
    return out;
  }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

/// Host values in a backend's memory, seen as [rows, cols].
struct Values {
  Buffer buffer;
  Tensor tensor;
};

Values put(Backend& backend, std::span<const float> values, int64_t rows, int64_t cols) {
  Values out;
  out.buffer = backend.upload(values);
  out.tensor = out.buffer.view();
  out.tensor.rows = rows;
  out.tensor.cols = cols;
  out.tensor.row_stride = cols;
  return out;
}

std::vector<float> take(Backend& backend, const Tensor& tensor) {
  std::vector<float> out(static_cast<size_t>(tensor.rows * tensor.cols));
  for (int64_t r = 0; r < tensor.rows; ++r) {
    backend.read_row(tensor, r,
                     std::span<float>(out).subspan(static_cast<size_t>(r * tensor.cols),
                                                   static_cast<size_t>(tensor.cols)));
  }
  return out;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Random blocks of a format whose weights are finite and of a usual size.
std::vector<std::byte> random_blocks(const FormatTraits& traits, int64_t count, Numbers& numbers) {
  std::vector<std::byte> blocks(static_cast<size_t>(count) * traits.block_bytes);
  std::vector<float> decoded(traits.block_elements);
  const auto is_usual = [](float value) { return std::abs(value) <= 16.0F; };  // false for NaN
  for (int64_t b = 0; b < count; ++b) {
    std::byte* const block = blocks.data() + static_cast<size_t>(b) * traits.block_bytes;
    do {
      for (uint32_t i = 0; i < traits.block_bytes; ++i) {
        block[i] = static_cast<std::byte>(numbers.bits() & 0xff);
      }
      traits.decode(block, decoded.data(), 1);
    } while (!std::all_of(decoded.begin(), decoded.end(), is_usual));
  }
  return blocks;
}

struct Linear {
  std::vector<std::byte> blocks;
  std::vector<float> weights;  ///< decoded, [rows, cols]
  WeightView view;
};

Linear random_linear(const FormatTraits& traits, int64_t rows, int64_t cols, Numbers& numbers) {
  Linear out;
  const int64_t num_blocks = rows * cols / traits.block_elements;
  out.blocks = random_blocks(traits, num_blocks, numbers);
  out.weights.resize(static_cast<size_t>(rows * cols));
  traits.decode(out.blocks.data(), out.weights.data(), static_cast<size_t>(num_blocks));
  out.view.format = traits.format;
  out.view.rows = rows;
  out.view.cols = cols;
  out.view.data = out.blocks;
  out.view.name = std::string(traits.name);
  return out;
}

std::vector<float> run_linear(Backend& backend, const Matrix& matrix, std::span<const float> x,
                              int64_t rows) {
  const Values input = put(backend, x, rows, matrix.cols());
  Buffer out = backend.allocate(DType::f32, rows, matrix.rows());
  LinearTask task;
  task.weight = &matrix;
  task.out = out.view();
  backend.linear(input.tensor, task);
  return take(backend, out.view());
}

/// A share of the allowed error, for people.
std::string share_text(double share) {
  std::ostringstream out;
  out.precision(2);
  out << 100 * share << " % of what is allowed";
  return out.str();
}

/// The largest error as a share of what the path may be off: rounding for the reference path,
/// activations in 8 bits per block for the others.
double linear_error(Isa isa, const Linear& linear, std::span<const float> x,
                    std::span<const float> got, int64_t num_tokens) {
  const int64_t rows = linear.view.rows;
  const int64_t cols = linear.view.cols;
  double worst = 0;
  for (int64_t t = 0; t < num_tokens; ++t) {
    const float* const row = x.data() + t * cols;
    double largest = 0;
    for (int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::abs(double{row[c]}));
    for (int64_t r = 0; r < rows; ++r) {
      const float* const w = linear.weights.data() + r * cols;
      double sum = 0;
      double sum_of_sizes = 0;
      double weight_sizes = 0;
      for (int64_t c = 0; c < cols; ++c) {
        sum += double{w[c]} * double{row[c]};
        sum_of_sizes += std::abs(double{w[c]} * double{row[c]});
        weight_sizes += std::abs(double{w[c]});
      }
      double allowed = 1e-5 * sum_of_sizes + 1e-6;
      if (isa != Isa::reference) allowed += weight_sizes * largest / 250.0;
      const double error = std::abs(double{got[static_cast<size_t>(t * rows + r)]} - sum);
      worst = std::isfinite(error) ? std::max(worst, error / allowed) : 1e9;
    }
  }
  return worst;
}

void check_linear(Isa isa, Backend& backend, Backend& three_threads, const OnCheck& on_check) {
  constexpr int64_t kTokens = 33;  // one more than the widest tile
  constexpr int64_t kRows = 72;
  constexpr int64_t kCols = 512;
  Numbers numbers(1);
  const std::vector<float> x = numbers.normals(kTokens * kCols);
  double worst = 0;
  std::string wrong;
  std::string varying;
  for (const FormatTraits& traits : all_formats()) {
    const Linear linear = random_linear(traits, kRows, kCols, numbers);
    const auto packed = backend.pack(linear.view);
    const auto packed_again = three_threads.pack(linear.view);
    if (!packed.ok() || !packed_again.ok()) {
      const Error& error = packed.ok() ? packed_again.error() : packed.error();
      wrong += " " + std::string(traits.name) + " (" + error.to_string() + ")";
      continue;
    }
    const auto all = run_linear(backend, **packed, x, kTokens);
    const double error = linear_error(isa, linear, x, all, kTokens);
    worst = std::max(worst, error);
    if (error > 1) wrong += " " + std::string(traits.name);
    bool same = same_bits(all, run_linear(three_threads, **packed_again, x, kTokens));
    for (const int64_t count : {int64_t{1}, int64_t{2}, int64_t{7}, int64_t{32}}) {
      for (int64_t begin = 0; begin + count <= kTokens; begin += count) {
        const auto part =
            run_linear(backend, **packed,
                       std::span<const float>(x).subspan(static_cast<size_t>(begin * kCols),
                                                         static_cast<size_t>(count * kCols)),
                       count);
        same = same && same_bits(part, std::span<const float>(all).subspan(
                                           static_cast<size_t>(begin * kRows),
                                           static_cast<size_t>(count * kRows)));
      }
    }
    if (!same) varying += " " + std::string(traits.name);
  }
  const std::string prefix = std::string(isa_name(isa)) + ": ";
  on_check({prefix + "matrix products against double", wrong.empty(), false,
            wrong.empty() ? std::to_string(all_formats().size()) + " formats; largest error " +
                                share_text(worst)
                          : "wrong:" + wrong});
  on_check(
      {prefix + "matrix products alone, together and on three threads", varying.empty(), false,
       varying.empty() ? "1, 2, 7, 32 and 33 rows give the same bits" : "bits differ:" + varying});
}

/// Attention with double sums over f32 values.
struct AttentionCase {
  AttentionParams params;
  KvType kv_type = KvType::f16;
  int64_t tokens = 75;
  std::vector<float> q, k, v;
};

AttentionCase random_case(KvType kv_type, int64_t window) {
  AttentionCase out;
  out.params.num_heads = 4;
  out.params.num_kv_heads = 2;
  out.params.head_dim = 64;
  out.params.scale = 0.125F;
  out.params.window = window;
  out.kv_type = kv_type;
  Numbers numbers(2);
  out.q = numbers.normals(out.tokens * 4 * 64);
  out.k = numbers.normals(out.tokens * 2 * 64);
  out.v = numbers.normals(out.tokens * 2 * 64);
  return out;
}

std::vector<double> plain_attention(const AttentionCase& one) {
  const AttentionParams& p = one.params;
  std::vector<double> out(one.q.size(), 0.0);
  const int64_t kv_width = p.num_kv_heads * p.head_dim;
  for (int64_t t = 0; t < one.tokens; ++t) {
    for (int64_t h = 0; h < p.num_heads; ++h) {
      const float* const q = one.q.data() + (t * p.num_heads + h) * p.head_dim;
      const int64_t kv_offset = h / (p.num_heads / p.num_kv_heads) * p.head_dim;
      const int64_t first = p.window > 0 ? std::max<int64_t>(0, t - p.window + 1) : 0;
      double* const to = out.data() + (t * p.num_heads + h) * p.head_dim;
      double total = 0;
      for (int64_t j = first; j <= t; ++j) {
        double score = 0;
        for (int64_t d = 0; d < p.head_dim; ++d) {
          score += double{q[d]} * double{one.k[static_cast<size_t>(j * kv_width + kv_offset + d)]};
        }
        const double weight = std::exp(score * double{p.scale});
        total += weight;
        for (int64_t d = 0; d < p.head_dim; ++d) {
          to[d] += weight * double{one.v[static_cast<size_t>(j * kv_width + kv_offset + d)]};
        }
      }
      for (int64_t d = 0; d < p.head_dim; ++d) to[d] /= total;
    }
  }
  return out;
}

/// Feeds the tokens `step` at a time.
std::vector<float> run_attention(Backend& backend, const AttentionCase& one, int64_t step) {
  const AttentionParams& p = one.params;
  KvPageLayout layout;
  layout.type = one.kv_type;
  layout.num_kv_heads = p.num_kv_heads;
  layout.head_dim = p.head_dim;
  const auto storage = backend.allocate_kv(layout, 1, 6);
  const std::vector<int32_t> table{3, 0, 5, 1, 2};  // 75 tokens, blocks in no order
  const int64_t q_width = p.num_heads * p.head_dim;
  const int64_t kv_width = p.num_kv_heads * p.head_dim;
  std::vector<float> out;
  for (int64_t begin = 0; begin < one.tokens; begin += step) {
    const int64_t rows = std::min(step, one.tokens - begin);
    const auto part = [&](const std::vector<float>& values, int64_t width) {
      return put(backend,
                 std::span<const float>(values).subspan(static_cast<size_t>(begin * width),
                                                        static_cast<size_t>(rows * width)),
                 rows, width);
    };
    const Values q = part(one.q, q_width);
    const Values k = part(one.k, kv_width);
    const Values v = part(one.v, kv_width);
    Buffer result = backend.allocate(DType::f32, rows, q_width);
    KvSequence sequence;
    sequence.num_rows = rows;
    sequence.first_position = begin;
    sequence.block_table = table;
    const std::span<const KvSequence> sequences(&sequence, 1);
    backend.kv_write(k.tensor, v.tensor, storage->layer(0), sequences);
    backend.attention(q.tensor, storage->layer(0), p, sequences, result.view());
    const auto values = take(backend, result.view());
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

/// Of attention's result, where values are of size 1.
double allowed_error(Isa isa, KvType kv_type) {
  if (is_quantized(kv_type)) return 5e-2;  // values have 8 bits, up to 4 / 127 apart
  return isa == Isa::reference && kv_type == KvType::f32 ? 2e-5 : 2e-2;
}

void check_attention(Isa isa, Backend& backend, Backend& three_threads, const OnCheck& on_check) {
  double worst = 0;
  bool same = true;
  for (const KvType kv_type : kKvTypes) {
    for (const int64_t window : {int64_t{0}, int64_t{20}}) {
      const AttentionCase one = random_case(kv_type, window);
      const std::vector<double> right = plain_attention(one);
      const std::vector<float> whole = run_attention(backend, one, one.tokens);
      const double allowed = allowed_error(isa, kv_type);
      for (size_t i = 0; i < right.size(); ++i) {
        const double error = std::abs(double{whole[i]} - right[i]);
        worst = std::isfinite(error) ? std::max(worst, error / allowed) : 1e9;
      }
      same = same && same_bits(whole, run_attention(three_threads, one, one.tokens));
      for (const int64_t step : {int64_t{1}, int64_t{7}, int64_t{32}}) {
        same = same && same_bits(whole, run_attention(backend, one, step));
      }
    }
  }
  const std::string prefix = std::string(isa_name(isa)) + ": ";
  on_check({prefix + "attention against double", worst <= 1, false,
            "f32, f16, q8 and q12 cache, with and without a window; largest error " +
                share_text(worst)});
  on_check({prefix + "attention whole, in pieces and on three threads", same, false,
            same ? "steps of 1, 7, 32 and 75 tokens give the same bits" : "bits differ"});
}

void check_rows(Isa isa, Backend& backend, const OnCheck& on_check) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kCols = 576;
  Numbers numbers(3);
  const auto x = numbers.normals(kRows * kCols);
  const auto y = numbers.normals(kRows * kCols);
  const auto weight = numbers.normals(kCols);
  const Values xs = put(backend, x, kRows, kCols);
  const Values ys = put(backend, y, kRows, kCols);
  const Values weights = put(backend, weight, 1, kCols);
  Buffer normed = backend.allocate(DType::f32, kRows, kCols);
  Buffer gated = backend.allocate(DType::f32, kRows, kCols);
  backend.rms_norm(xs.tensor, weights.tensor, 1e-5F, normed.view());
  backend.gated_activation(xs.tensor, ys.tensor, Activation::silu, gated.view());
  const auto norm_values = take(backend, normed.view());
  const auto gate_values = take(backend, gated.view());
  double worst = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    double squares = 0;
    for (int64_t c = 0; c < kCols; ++c) squares += std::pow(double{x[size_t(r * kCols + c)]}, 2);
    const double scale = 1.0 / std::sqrt(squares / double{kCols} + 1e-5);
    for (int64_t c = 0; c < kCols; ++c) {
      const auto i = static_cast<size_t>(r * kCols + c);
      const double value = double{x[i]};
      const double norm = value * scale * double{weight[static_cast<size_t>(c)]};
      const double gate = value / (1.0 + std::exp(-value)) * double{y[i]};
      const double error = std::max(std::abs(double{norm_values[i]} - norm),
                                    std::abs(double{gate_values[i]} - gate));
      worst = std::isfinite(error) ? std::max(worst, error) : 1e9;
    }
  }
  on_check({std::string(isa_name(isa)) + ": norm and activation against double", worst < 1e-4,
            false, "largest error " + std::to_string(worst)});
}

}  // namespace

void check_kernels(Isa isa, const OnCheck& on_check) {
  const auto backend = make_cpu_backend(CpuBackendOptions{isa, 1});
  const auto three_threads = make_cpu_backend(CpuBackendOptions{isa, 3});
  check_rows(isa, *backend, on_check);
  check_linear(isa, *backend, *three_threads, on_check);
  check_attention(isa, *backend, *three_threads, on_check);
}

}  // namespace headrace
