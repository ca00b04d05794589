// The kernels of the AVX2 path, and the same with the products of AVX-VNNI.
#include "backend/cpu/kernels/body/packed_table.inl"

namespace headrace::avx2_vnni {

extern const PanelFunction int_panels[kNumIntPanelFormats];
extern const Q8Kernels q8_kernels;
int64_t peak(int64_t rounds, float* sink);

}  // namespace headrace::avx2_vnni

namespace headrace::HEADRACE_ISA_NAMESPACE {
namespace {

constexpr KernelTable table() {
  KernelTable table = packed_table("avx2", int_panels, &q8_kernels, {"vpmaddubsw", peak});
  table.needs_whole = true;
  return table;
}

}  // namespace

extern const KernelTable kTable;
constexpr KernelTable kTable = table();

extern const KernelTable kVnniTable;
constexpr KernelTable kVnniTable =
    packed_table("avx2 (VNNI)", avx2_vnni::int_panels, &avx2_vnni::q8_kernels,
                 {"vpdpbusd ymm", avx2_vnni::peak});

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
