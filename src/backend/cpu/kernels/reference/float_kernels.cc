// Float kernels of the reference path: the shared bodies, without fused multiply-add.
#include "backend/cpu/kernels/body/attention.inl"
#include "backend/cpu/kernels/body/float_panels.inl"
#include "backend/cpu/kernels/body/rows.inl"
#include "backend/cpu/kernels/kernel_names.inl"
