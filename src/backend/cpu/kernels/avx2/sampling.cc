// Sampling kernels of the AVX2 path: the shared body, with fused multiply-add.
#include "backend/cpu/kernels/kernel_names.inl"

#include "backend/cpu/kernels/body/sampling.inl"
