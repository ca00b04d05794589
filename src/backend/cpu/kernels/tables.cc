// See tables.h. The priority list of each instruction set: the first table this machine can run.
#include "backend/cpu/kernels/tables.h"

#include "base/check.h"

namespace headrace {

#define HEADRACE_TABLE(set)        \
  namespace set {                  \
  extern const KernelTable kTable; \
  }
HEADRACE_TABLE(reference_baseline)
#if defined(__x86_64__)
HEADRACE_TABLE(reference_avx2)
HEADRACE_TABLE(reference_avx512)
HEADRACE_TABLE(avx2)
namespace avx2 {
extern const KernelTable kVnniTable;
}
HEADRACE_TABLE(avx512)
HEADRACE_TABLE(amx)
#elif defined(__aarch64__)
HEADRACE_TABLE(neon)
namespace neon {
extern const KernelTable kDotTable;
}
#endif
#undef HEADRACE_TABLE

std::vector<const KernelTable*> kernel_tables(Isa isa) {
  std::vector<const KernelTable*> tables;
#if defined(__x86_64__)
  const CpuFeatures& cpu = cpu_features();
  switch (isa) {
    case Isa::amx:
      if (cpu.amx_bf16 && cpu.avx512_bf16 && cpu.avx512_vbmi) tables.push_back(&amx::kTable);
      break;
    case Isa::avx512:
      if (cpu.avx512_vnni) tables.push_back(&avx512::kTable);
      break;
    case Isa::avx2:
      if (cpu.avx_vnni) tables.push_back(&avx2::kVnniTable);
      if (cpu.avx2) tables.push_back(&avx2::kTable);
      break;
    case Isa::neon:
      break;
    case Isa::reference:
      if (cpu.avx512) tables.push_back(&reference_avx512::kTable);
      if (cpu.avx2) tables.push_back(&reference_avx2::kTable);
      break;
  }
#elif defined(__aarch64__)
  const CpuFeatures& cpu = cpu_features();
  if (isa == Isa::neon && cpu.neon_dot) tables.push_back(&neon::kDotTable);
  if (isa == Isa::neon && cpu.neon) tables.push_back(&neon::kTable);
#endif
  if (isa == Isa::reference) tables.push_back(&reference_baseline::kTable);
  return tables;
}

const KernelTable& kernel_table(Isa isa) {
  const auto tables = kernel_tables(isa);
  HEADRACE_CHECK(!tables.empty());
  return *tables.front();
}

}  // namespace headrace
