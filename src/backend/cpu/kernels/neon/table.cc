// The kernels of the NEON path, and the same with the dot-product extension.
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::neon_dot {

extern const PanelFunction int_panels[kNumIntPanelFormats];
int64_t peak(int64_t rounds, float* sink);

}  // namespace headrace::neon_dot

namespace headrace::HEADRACE_ISA_NAMESPACE {

namespace {

struct Peak {
  const char* instruction;
  int64_t (*run)(int64_t rounds, float* sink);
};

constexpr KernelTable table(const char* name, const PanelFunction* panels, Peak most) {
  return {
      .name = name,
      .quantize_row = quantize_row,
      .int_panels = panels,
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
      .peak_instruction = most.instruction,
      .peak = most.run,
      .read_memory = read_memory,
      .sampling = &sampling_kernels,
  };
}

}  // namespace

extern const KernelTable kTable;
const KernelTable kTable = table("neon", int_panels, {"smlal", peak});

extern const KernelTable kDotTable;
const KernelTable kDotTable =
    table("neon (dot product)", neon_dot::int_panels, {"sdot", neon_dot::peak});

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
