// The kernels of the AVX-512 path.
#include "backend/cpu/kernels/body/packed_table.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const KernelTable kTable;
constexpr KernelTable kTable =
    packed_table("avx512 (VNNI)", int_panels, &q8_kernels, {"vpdpbusd", peak});

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
