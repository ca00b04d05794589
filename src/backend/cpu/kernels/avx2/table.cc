// The kernels of the AVX2 path.
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const KernelTable kTable;
const KernelTable kTable = {
    .name = "avx2",
    .float_panel = float_panel,
    .quantize_row = quantize_row,
    .int_panel = {int_panel_q4_0, int_panel_q4_1, int_panel_q5_0, int_panel_q5_1, int_panel_q8_0,
                  int_panel_q4_k, int_panel_q5_k, int_panel_q6_k},
    .attend = attend,
    .attend_merge = attend_merge,
    .rms_norm = rms_norm,
    .rope_neox = rope_neox,
    .rope_interleaved = rope_interleaved,
    .silu_mul = silu_mul,
    .gelu_tanh_mul = gelu_tanh_mul,
    .add = add,
    .scale = scale,
    .soft_cap = soft_cap,
    .argmax = argmax,
    .to_f16 = to_f16,
    .peak_instruction = "vpmaddubsw",
    .peak = peak,
    .read_memory = read_memory,
    .sampling = &sampling_kernels,
};

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
