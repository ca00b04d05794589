// The kernels of the AVX-512 path.
#include "backend/cpu/kernels/body/packed_table.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {
namespace {

constexpr KernelTable table() {
  KernelTable table = packed_table("avx512 (VNNI)", int_panels, &q8_kernels, {"vpdpbusd", peak});
  table.has_wide_steps = true;
  table.least_searched = int64_t{4} << 20;
  return table;
}

}  // namespace

extern const KernelTable kTable;
constexpr KernelTable kTable = table();

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
