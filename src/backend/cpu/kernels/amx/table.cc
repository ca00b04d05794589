// The kernels of the AMX path: tiles of bf16 for products with packed weights, AVX-512 for the
// rest.
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

extern const KernelTable kTable;
const KernelTable kTable = {
    .name = "amx (bf16)",
    .form = {ActivationForm::bf16, ActivationForm::bf16},
    .forms = {{}, {}, {}, {.panels = tile_panels, .tile_rows = tile_rows}},
    .float_panel = float_panel,
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
};

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
