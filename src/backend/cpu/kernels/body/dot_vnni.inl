// The dot product of VNNI: u8 codes times s8 activations, four columns at once into int32, without
// saturation. The including file has before this one, for its width of vectors:
//   zero(), kMostRows: see body/int_panels.inl.
//   broadcast(columns): four columns of activations in every lane.
//   add_products(dot, codes, columns): dot + the lane's sum of 4 products.
#pragma once

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

/// Signed codes are multiplied as code + 128.
constexpr bool kFlipSigned = true;
constexpr bool kWidensSigned = false;

HEADRACE_INLINE vi four_columns(const int8_t* x) {
  int32_t columns;
  std::memcpy(&columns, x, 4);
  return broadcast(columns);
}

/// No overflow: 32 products of at most 255 * 127 stay below 2^31.
template <class Codes, int kSteps>
HEADRACE_INLINE vi dot_row(const vu8* w, const int8_t* x) {
  vi dot = zero();
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) dot = add_products(dot, w[s], four_columns(x + 4 * s));
  return dot;
}

template <class Codes, int kSteps, int kRows, int kVectors>
HEADRACE_INLINE void dot_rows(const vu8 (*w)[kVectors], const int8_t* x,
                              vi (&dot)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      vi columns = four_columns(x + 32 * r + 4 * s);
      // One load for all vectors.
      asm volatile("" : "+v"(columns));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) dot[r][v] = add_products(dot[r][v], w[s][v], columns);
    }
  }
}

}  // namespace
}  // namespace headrace
