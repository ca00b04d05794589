// The reference kernels, compiled once for each width (see CMakeLists.txt): float32 throughout, no
// fused multiply-add, hence bit-identical on every machine.
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const KernelTable kTable;
const KernelTable kTable = {
    .name = "reference",
    .quantize_row = nullptr,
    .int_panels = nullptr,
    .f32_panels = f32_panels,
    .f16_panels = nullptr,
    .bf16_panels = nullptr,
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
    .peak_instruction = "multiply and add",
    .peak = peak,
    .read_memory = read_memory,
    .sampling = &sampling_kernels,
};

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
