// exp and tanh over sixteen lanes. Own polynomials, so that results depend neither on the C library
// nor on the number of rows.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

/// e^x within 2 units in the last place; 0 below -87, capped at x = 88. NaN gives NaN.
/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series to r^7, whose remainder
/// (0.3466^8 / 8! = 5e-9) is below half a unit.
HEADRACE_INLINE F16x exp(F16x x) {
  const F16x clamped = min(splat(88.0F), x);  // keeps NaN
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const F16x magic = splat(12582912.0F);
  const F16x shifted = mul_add(clamped, splat(1.44269504088896341F), magic);
  const F16x n = shifted - magic;
  F16x r = mul_add(n, splat(-0.693359375F), clamped);  // ln 2 in two parts; the first has 9 bits
  r = mul_add(n, splat(2.12194440054690583e-4F), r);
  F16x poly = splat(1.0F / 5040.0F);
  poly = mul_add(poly, r, splat(1.0F / 720.0F));
  poly = mul_add(poly, r, splat(1.0F / 120.0F));
  poly = mul_add(poly, r, splat(1.0F / 24.0F));
  poly = mul_add(poly, r, splat(1.0F / 6.0F));
  poly = mul_add(poly, r, splat(0.5F));
  poly = mul_add(poly, r, splat(1.0F));
  poly = mul_add(poly, r, splat(1.0F));
  F16x power;
  // Wraps where x is out of range; those lanes are replaced below.
  HEADRACE_EACH power.p[i] = (vf)(((vu)shifted.p[i] << 23) + 0x3f800000U);
  return select(less(x, splat(-87.0F)), splat(0.0F), poly * power);
}

/// (1 - e^-2|x|) / (1 + e^-2|x|) with x's sign: absolute error within 1e-7.
HEADRACE_INLINE F16x tanh(F16x x) {
  F16x magnitude;
  HEADRACE_EACH magnitude.p[i] = (vf)((vi)x.p[i] & 0x7fffffff);
  const F16x t = exp(magnitude * splat(-2.0F));
  F16x r = (splat(1.0F) - t) / (splat(1.0F) + t);
  HEADRACE_EACH r.p[i] = (vf)((vi)r.p[i] | ((vi)x.p[i] & INT32_MIN));
  return r;
}

}  // namespace
}  // namespace headrace
