// Attention over q8 and q12 pages of the reference path.
#include "backend/cpu/kernels/reference/q8_products.inl"
// The table is made from the products above.
#include "backend/cpu/kernels/body/q8_table.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const Q8Kernels q8_kernels;
const Q8Kernels q8_kernels = q8_table<PlainProducts>();

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
