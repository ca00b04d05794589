// Attention over q8 and q12 pages of the AVX2 path.
#include "backend/cpu/kernels/body/q8_words.inl"
// The table is made from the products above.
#include "backend/cpu/kernels/body/q8_table.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const Q8Kernels q8_kernels;
const Q8Kernels q8_kernels = q8_table<WordProducts>();

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
