// See tables.h. The priority list of each instruction set: the first table this machine can run.
#include "backend/cpu/kernels/tables.h"

#include "base/check.h"

namespace headrace {

namespace reference_baseline {
extern const KernelTable kTable;
}
#if defined(__x86_64__)
namespace reference_avx2 {
extern const KernelTable kTable;
}
namespace reference_avx512 {
extern const KernelTable kTable;
}
#endif

const KernelTable& kernel_table([[maybe_unused]] Isa isa) {
  [[maybe_unused]] const CpuFeatures& cpu = cpu_features();
#if defined(__x86_64__)
  if (cpu.avx512) return reference_avx512::kTable;
  if (cpu.avx2) return reference_avx2::kTable;
#endif
  return reference_baseline::kTable;
}

}  // namespace headrace
