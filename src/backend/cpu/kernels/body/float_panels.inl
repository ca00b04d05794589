// Float weights (f32, f16, bf16), 16 output rows interleaved, times rows of float activations.
//
// Every output adds up its products column by column in chunks of kChunkCols, and then the chunks:
// shorter chains of rounding errors. The order is the same for every number of rows.
#pragma once

#include "backend/cpu/kernels/body/outputs.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace {
namespace {

constexpr int64_t kChunkCols = 64;

// Machine vectors of outputs that share a load of activations.
constexpr int kFloatVectors = HEADRACE_LANES == 4 ? 4 : 2;
constexpr int64_t kFloatPanels = kFloatVectors * HEADRACE_LANES / kPanelRows;
// Columns whose weights are multiplied with all rows before the next ones: as many chunks as leave
// room for activations in the first-level cache. Sums lie in `out` between them.
constexpr int64_t kSpanCols = kChunkCols * (kFloatPanels == 1 ? 4 : 2);
// As many rows as keep the sums in registers, beside kFloatVectors weights and an activation.
constexpr int kMostFloatRows = HEADRACE_LANES == 8 ? 6 : kVectorRegisters / 2 / kFloatVectors;
// With more rows than this, 16-bit weights become floats once for all of them.
constexpr int64_t kRowsWorthConverting = 16;

enum class Half : uint16_t {};
enum class BHalf : uint16_t {};

HEADRACE_INLINE vf load_vector(const float* x) {
  vf v;
  std::memcpy(&v, x, sizeof(v));
  return v;
}
#if HEADRACE_FMA  // the reference has floats only
HEADRACE_INLINE vf load_vector(const Half* x) {
#if HEADRACE_LANES == 16
  return (vf)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
#elif HEADRACE_LANES == 8
  return (vf)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
#else
  return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(x))));
#endif
}
HEADRACE_INLINE vf load_vector(const BHalf* x) {
#if HEADRACE_LANES == 16
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16);
#elif HEADRACE_LANES == 8
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
#else
  return (vf)vshll_n_u16(vld1_u16(reinterpret_cast<const uint16_t*>(x)), 16);
#endif
}
#endif

/// Weights of some columns: vector v of column k is at data[v / kParts] + k * 16 + its part.
template <class T>
struct SpanWeights {
  const T* data[kFloatPanels];
  int64_t cols;
  bool prefetch;  ///< asks for the weights 2 KiB further on
};

/// The products of columns `first` to `end`, a chunk, with kRows rows from x on, added to total:
/// [kRows][kFloatVectors].
template <class T, int kRows>
HEADRACE_INLINE void multiply_chunk(const SpanWeights<T>& w, int64_t first, int64_t end,
                                    const float* x, int64_t x_stride, vf* total) {
  constexpr int64_t kAhead = 2048 / sizeof(T);
  vf sum[kRows][kFloatVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kFloatVectors; ++v) sum[r][v] = vf{};
  }
  for (int64_t k = first; k < end; ++k) {
    vf weights[kFloatVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kFloatVectors; ++v) {
      const T* at = w.data[v / kParts] + k * kPanelRows + v % kParts * HEADRACE_LANES;
      if (w.prefetch && v % kParts == 0) __builtin_prefetch(at + kAhead);
      weights[v] = load_vector(at);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const vf value = x[r * x_stride + k] - vf{};
#pragma GCC unroll 4
      for (int v = 0; v < kFloatVectors; ++v) {
        sum[r][v] = mul_add_vector(weights[v], value, sum[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kFloatVectors; ++v) total[r * kFloatVectors + v] += sum[r][v];
  }
}

/// Where a span's results go.
struct SpanOutput {
  const FloatRun& run;
  int64_t first_col;
  int64_t first_output;
  bool is_first;
  bool is_last;
};

template <class T, int kRows>
__attribute__((noinline)) void span_rows_of_floats(const SpanWeights<T>& w, const SpanOutput& span,
                                                   int64_t row) {
  const FloatRun& a = span.run;
  const Outputs outputs = {a.out + row * a.out_stride + span.first_output, a.out_stride,
                           a.num_outputs - span.first_output,
                           a.bias != nullptr ? a.bias + span.first_output : nullptr};
  const float* x = a.x + row * a.x_stride + span.first_col;
  vf total[kRows * kFloatVectors];
  begin_sums<kFloatVectors>(outputs, kRows, span.is_first, total);
  for (int64_t first = 0; first < w.cols; first += kChunkCols) {
    multiply_chunk<T, kRows>(w, first, smaller(first + kChunkCols, w.cols), x, a.x_stride, total);
  }
  store_sums<kFloatVectors>(outputs, kRows, span.is_last, total);
}

template <class T>
HEADRACE_INLINE void span_all_rows_of_floats(SpanWeights<T> w, const SpanOutput& span) {
  const int64_t num_rows = span.run.num_rows;
  w.prefetch = true;
  for (int64_t row = 0; row < num_rows;) {
    row += take_rows<kMostFloatRows>(num_rows - row, [&](auto rows) {
      span_rows_of_floats<T, decltype(rows)::kCount>(w, span, row);
    });
    w.prefetch = false;
  }
}

template <class T>
void float_run(const FloatRun& a) {
  const int64_t num_panels = panels_of(a.num_outputs);
  const auto* panels = static_cast<const T*>(a.panels);
  alignas(64) float converted[kFloatPanels][kSpanCols * kPanelRows];
  for (int64_t panel = 0; panel < num_panels; panel += kFloatPanels) {
    for (int64_t first = 0; first < a.cols; first += kSpanCols) {
      SpanWeights<T> w;
      w.cols = smaller(kSpanCols, a.cols - first);
      for (int64_t p = 0; p < kFloatPanels; ++p) {
        // Where there is no second panel, the last one's products are made twice and dropped once.
        const int64_t at = smaller(panel + p, num_panels - 1);
        w.data[p] = panels + (at * a.cols + first) * kPanelRows;
      }
      const SpanOutput span = {a, first, panel * kPanelRows, first == 0, first + w.cols == a.cols};
      if (sizeof(T) == sizeof(float) || a.num_rows < kRowsWorthConverting) {
        span_all_rows_of_floats(w, span);
        continue;
      }
      SpanWeights<float> floats;
      floats.cols = w.cols;
      for (int64_t p = 0; p < kFloatPanels; ++p) {
        for (int64_t i = 0; i < w.cols * kPanelRows; i += HEADRACE_LANES) {
          const vf part = load_vector(w.data[p] + i);
          std::memcpy(converted[p] + i, &part, sizeof(part));
        }
        floats.data[p] = converted[p];
      }
      span_all_rows_of_floats(floats, span);
    }
  }
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

void f32_panels(const FloatRun& args) {
  float_run<float>(args);
}
#if HEADRACE_FMA
void f16_panels(const FloatRun& args) {
  float_run<Half>(args);
}
void bf16_panels(const FloatRun& args) {
  float_run<BHalf>(args);
}
#endif

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
