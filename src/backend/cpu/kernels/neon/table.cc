// The kernels of the NEON path, and the same with the dot-product extension.
#include "backend/cpu/kernels/body/packed_table.inl"

namespace headrace::neon_dot {

extern const PanelFunction int_panels[kNumIntPanelFormats];
int64_t peak(int64_t rounds, float* sink);

}  // namespace headrace::neon_dot

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const KernelTable kTable;
constexpr KernelTable kTable = packed_table("neon", int_panels, &q8_kernels, {"smlal", peak});

extern const KernelTable kDotTable;
constexpr KernelTable kDotTable =
    packed_table("neon (dot product)", neon_dot::int_panels, &q8_kernels, {"sdot", neon_dot::peak});

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
