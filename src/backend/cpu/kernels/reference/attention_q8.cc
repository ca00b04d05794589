// Attention over q8 and q12 pages of the reference path.
#include "backend/cpu/kernels/reference/q8_products.inl"

// The order matters: round_weights comes first.
#include "backend/cpu/kernels/body/attention_q8.inl"
#include "backend/cpu/kernels/body/q8_rows.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const Q8Kernels q8_kernels;
const Q8Kernels q8_kernels = {
    .store = store_q8,
    .quantize_queries = quantize_queries,
    .attend = attend_q8<PlainProducts>,
    .finish_row = finish_row,
};

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
