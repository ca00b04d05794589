// Float kernels of the AVX-512 path: the shared bodies, with fused multiply-add.
#include "backend/cpu/kernels/body/attention.inl"
#include "backend/cpu/kernels/body/float_panels.inl"
#include "backend/cpu/kernels/body/rows.inl"
#include "backend/cpu/kernels/kernel_names.inl"
