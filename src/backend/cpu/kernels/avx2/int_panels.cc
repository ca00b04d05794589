// Products with packed integer weights of the AVX2 path.
#include "backend/cpu/kernels/avx2/dot.inl"
// The shared body uses the dot product above.
#include "backend/cpu/kernels/body/int_panels.inl"
