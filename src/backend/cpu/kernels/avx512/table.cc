// The kernels of the AVX-512 path.
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const KernelTable kTable;
const KernelTable kTable = {
    .name = "avx512 (VNNI)",
    .quantize_row = quantize_row,
    .int_panels = int_panels,
    .f32_panels = f32_panels,
    .f16_panels = f16_panels,
    .bf16_panels = bf16_panels,
    .attend = attend,
    .q8 = &q8_kernels,
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
    .peak_instruction = "vpdpbusd",
    .peak = peak,
    .read_memory = read_memory,
    .sampling = &sampling_kernels,
};

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
