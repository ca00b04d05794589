// Float weights, 16 output rows interleaved, times rows of activations.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

// Partial sums over 64 columns are added up afterwards: shorter chains of rounding errors.
constexpr int64_t kChunkCols = 64;

template <int kRows>
void float_panel_rows(const FloatPanel& a, int64_t first_row) {
  const float* x[kRows];
  F16x total[kRows];
  for (int r = 0; r < kRows; ++r) {
    x[r] = a.x + (first_row + r) * a.x_stride;
    total[r] = splat(0.0F);
  }
  for (int64_t begin = 0; begin < a.cols; begin += kChunkCols) {
    const int64_t end = begin + kChunkCols < a.cols ? begin + kChunkCols : a.cols;
    F16x sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = splat(0.0F);
    for (int64_t k = begin; k < end; ++k) {
      const F16x w = load(a.panel + k * kPanelRows);
      for (int r = 0; r < kRows; ++r) sum[r] = mul_add(w, splat(x[r][k]), sum[r]);
    }
    for (int r = 0; r < kRows; ++r) total[r] = total[r] + sum[r];
  }
  for (int r = 0; r < kRows; ++r) {
    store_panel_row(a.out + (first_row + r) * a.out_stride, total[r], a.bias, a.num_lanes);
  }
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

void float_panel(const FloatPanel& args) {
  // As many rows as keep the sums in registers.
  constexpr int kRows = HEADRACE_LANES == 4 ? 2 : HEADRACE_LANES == 8 ? 4 : 8;
  int64_t r = 0;
  for (; r + kRows <= args.num_rows; r += kRows) float_panel_rows<kRows>(args, r);
  if constexpr (kRows > 4) {
    for (; r + 4 <= args.num_rows; r += 4) float_panel_rows<4>(args, r);
  }
  if constexpr (kRows > 2) {
    for (; r + 2 <= args.num_rows; r += 2) float_panel_rows<2>(args, r);
  }
  for (; r < args.num_rows; ++r) float_panel_rows<1>(args, r);
}

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
