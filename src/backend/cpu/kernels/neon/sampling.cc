// Sampling kernels of the NEON path: the shared body, with fused multiply-add.
#include "backend/cpu/kernels/kernel_names.inl"

#include "backend/cpu/kernels/body/sampling.inl"
