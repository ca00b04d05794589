// The kernels of the AMX path: tiles of bf16 for products with packed weights, AVX-512 for the
// rest.
#include "backend/cpu/kernels/body/float_table.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {
namespace {

constexpr KernelTable tile_table() {
  KernelTable table = float_table("amx (bf16)", &q8_kernels, {"tdpbf16ps", peak});
  table.tile_rows = tile_rows;
  table.tile_panels = tile_panels;
  table.f16_panels = f16_panels;
  table.bf16_panels = bf16_panels;
  return table;
}

}  // namespace

extern const KernelTable kTable;
constexpr KernelTable kTable = tile_table();

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
