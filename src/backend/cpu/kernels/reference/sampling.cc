// Sampling kernels of the reference path: the shared body, without fused multiply-add.
#include "backend/cpu/kernels/kernel_names.inl"

#include "backend/cpu/kernels/body/sampling.inl"
