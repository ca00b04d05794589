// What the AVX2 path with AVX-VNNI can do at most.
#include "backend/cpu/kernels/avx2/dot_vnni.inl"
// The peak is that of the instruction above.
#include "backend/cpu/kernels/body/peak_vnni.inl"
