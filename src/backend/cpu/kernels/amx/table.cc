// The kernels of the AMX path: tiles of bf16 for products with packed weights, AVX-512 for the
// rest.
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const KernelTable kTable;
const KernelTable kTable = {
    .name = "amx (bf16)",
    .quantize_row = nullptr,
    .int_panels = nullptr,
    .tile_rows = tile_rows,
    .tile_panels = tile_panels,
    .f32_panels = f32_panels,
    .f16_panels = f16_panels,
    .bf16_panels = bf16_panels,
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
    .peak_instruction = "tdpbf16ps",
    .peak = peak,
    .read_memory = read_memory,
    .sampling = &sampling_kernels,
};

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
