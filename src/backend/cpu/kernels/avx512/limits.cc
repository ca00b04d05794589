// What the AVX-512 path can do at most.
#include "backend/cpu/kernels/avx512/dot.inl"
#include "backend/cpu/kernels/body/read_memory.inl"
// The peak is that of the instruction above.
#include "backend/cpu/kernels/body/peak_vnni.inl"
