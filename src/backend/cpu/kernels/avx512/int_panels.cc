// Products with packed integer weights of the AVX-512 path.
#include "backend/cpu/kernels/avx512/dot.inl"
// The shared body uses the dot product above.
#include "backend/cpu/kernels/body/int_panels.inl"
