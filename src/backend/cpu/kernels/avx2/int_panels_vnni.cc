// Products with packed integer weights of the AVX2 path, with AVX-VNNI.
#include "backend/cpu/kernels/avx2/dot_vnni.inl"
// What multiplies one form of activations uses the dot product above.
#include "backend/cpu/kernels/body/rows_two_planes.inl"
// The shared body uses that.
#include "backend/cpu/kernels/body/int_panels.inl"
