// exp, tanh and the normal distribution over sixteen lanes. Own polynomials, so that results depend
// neither on the C library nor on the number of rows.
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

/// 1 / (1 + e^-x).
HEADRACE_INLINE F16x logistic(F16x x) {
  return splat(1.0F) / (splat(1.0F) + exp(splat(0.0F) - x));
}

/// The normal distribution, erfc(-x / sqrt(2)) / 2: relative error within 1e-6 below zero while
/// x^2 / 2 is exact, absolute error within 1e-7 above. With z = |x| / sqrt(2) and
/// t = 1 / (1 + 0.3 z), erfc(z) = e^(-z^2) t * (minimax of relative error in t, degree 8, 2e-8).
HEADRACE_INLINE F16x normal_distribution(F16x x) {
  F16x magnitude;
  HEADRACE_EACH magnitude.p[i] = (vf)((vi)x.p[i] & 0x7fffffff);
  const F16x t = splat(1.0F) / mul_add(magnitude, splat(0.3F * 0.70710678118654752F), splat(1.0F));
  F16x poly = splat(-0.12940670F);
  poly = mul_add(poly, t, splat(0.48495238F));
  poly = mul_add(poly, t, splat(-0.51090140F));
  poly = mul_add(poly, t, splat(0.54598489F));
  poly = mul_add(poly, t, splat(-0.093315119F));
  poly = mul_add(poly, t, splat(0.21428410F));
  poly = mul_add(poly, t, splat(0.14852704F));
  poly = mul_add(poly, t, splat(0.17068466F));
  poly = mul_add(poly, t, splat(0.16919012F));
  const F16x tail = splat(0.5F) * t * poly * exp(splat(-0.5F) * x * x);
  return select(less(x, splat(0.0F)), tail, splat(1.0F) - tail);
}

}  // namespace
}  // namespace headrace
