// The reference kernels, compiled once for each width (see CMakeLists.txt): float32 throughout, no
// fused multiply-add, hence bit-identical on every machine.
#include "backend/cpu/kernels/body/float_table.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const KernelTable kTable;
constexpr KernelTable kTable = float_table("reference", &q8_kernels, {"multiply and add", peak});

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
