// Powers of two over sixteen lanes, for attention over q8 pages.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

/// 2^n * poly for the integers n = shifted - magic; 0 where x < -126.
HEADRACE_INLINE F16x scale_by_power(F16x x, F16x shifted, F16x poly) {
  F16x power;
  // Wraps where x is out of range; those lanes are replaced.
  HEADRACE_EACH power.p[i] = (vf)(((vu)shifted.p[i] << 23) + 0x3f800000U);
  return select(less(x, splat(-126.0F)), splat(0.0F), poly * power);
}

/// 2^x for x <= 127, within 1e-7 of it; 0 below -126, exactly 1 at 0. NaN gives NaN.
/// x = n + f with |f| <= 1/2; the polynomial is 1 + f * (minimax of relative error, degree 4).
HEADRACE_INLINE F16x exp2(F16x x) {
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const F16x magic = splat(12582912.0F);
  const F16x shifted = x + magic;
  const F16x f = x - (shifted - magic);
  F16x poly = splat(0.00132647F);
  poly = mul_add(poly, f, splat(0.00967151F));
  poly = mul_add(poly, f, splat(0.05550734F));
  poly = mul_add(poly, f, splat(0.24022242F));
  poly = mul_add(poly, f, splat(0.69314698F));
  poly = mul_add(poly, f, splat(1.0F));
  return scale_by_power(x, shifted, poly);
}

/// The same within 1e-4 of it: for numbers that are then rounded to 15 bits.
HEADRACE_INLINE F16x exp2_short(F16x x) {
#if HEADRACE_FMA && HEADRACE_LANES == 16
  // x = n + f with 0 <= f < 1.
  const __m512 v = (__m512)x.p[0];
  const F16x f = {{(vf)_mm512_reduce_ps(v, 0x09)}};  // x - floor(x)
  F16x poly = splat(0.07706699F);
  poly = mul_add(poly, f, splat(0.22764505F));
  poly = mul_add(poly, f, splat(0.69511677F));
  poly = mul_add(poly, f, splat(1.0F));
  return {{(vf)_mm512_scalef_ps((__m512)poly.p[0], v)}};  // takes floor(x)
#else
  const F16x magic = splat(12582912.0F);
  const F16x shifted = x + magic;
  const F16x f = x - (shifted - magic);
  F16x poly = splat(0.05500895F);
  poly = mul_add(poly, f, splat(0.24221101F));
  poly = mul_add(poly, f, splat(0.69328293F));
  poly = mul_add(poly, f, splat(1.0F));
  return scale_by_power(x, shifted, poly);
#endif
}

}  // namespace
}  // namespace headrace
