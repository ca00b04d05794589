// The kernels of the AVX2 path, and the same with the products of AVX-VNNI.
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::avx2_vnni {

extern const PanelFunction int_panels[kNumIntPanelFormats];
extern const Q8Kernels q8_kernels;

}  // namespace headrace::avx2_vnni

namespace headrace::HEADRACE_ISA_NAMESPACE {

namespace {

constexpr KernelTable table(const char* name, const PanelFunction* panels, const Q8Kernels* q8) {
  return {
      .name = name,
      .quantize_row = quantize_row,
      .int_panels = panels,
      .f32_panels = f32_panels,
      .f16_panels = f16_panels,
      .bf16_panels = bf16_panels,
      .attend = attend,
      .q8 = q8,
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
}

}  // namespace

extern const KernelTable kTable;
const KernelTable kTable = table("avx2", int_panels, &q8_kernels);

extern const KernelTable kVnniTable;
const KernelTable kVnniTable = table("avx2 (VNNI)", avx2_vnni::int_panels, &avx2_vnni::q8_kernels);

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
