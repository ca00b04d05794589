// Products with packed integer weights of the AVX-512 path.
#include "backend/cpu/kernels/avx512/dot.inl"
// What multiplies one form of activations uses the dot product above.
#include "backend/cpu/kernels/body/rows_wide_steps.inl"
// The shared body uses that.
#include "backend/cpu/kernels/body/int_panels.inl"
