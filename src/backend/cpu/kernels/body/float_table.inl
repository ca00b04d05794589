// The kernels that every table has, by their names in namespace HEADRACE_ISA_NAMESPACE.
#pragma once

#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {
namespace {

/// KernelTable::peak and its instruction.
struct Peak {
  const char* instruction;
  int64_t (*run)(int64_t rounds, float* sink);
};

constexpr KernelTable float_table(const char* name, const Q8Kernels* q8, Peak most) {
  return {
      .name = name,
      .quantize_row = nullptr,
      .has_wide_steps = false,
      .needs_whole = false,
      .int_panels = nullptr,
      .tile_rows = nullptr,
      .tile_panels = nullptr,
      .f32_panels = f32_panels,
      .f16_panels = nullptr,
      .bf16_panels = nullptr,
      .attend = attend,
      .q8 = q8,
      .attend_merge = attend_merge,
      .rms_norm = rms_norm,
      .layer_norm = layer_norm,
      .rope_neox = rope_neox,
      .activate = activate,
      .add = add,
      .scale = scale,
      .add_scaled = add_scaled,
      .softmax = softmax,
      .sigmoid = sigmoid,
      .soft_cap = soft_cap,
      .clamp = clamp,
      .gate = gate,
      .argmax = argmax,
      .to_f16 = to_f16,
      .peak_instruction = most.instruction,
      .peak = most.run,
      .read_memory = read_memory,
      .sampling = &sampling_kernels,
  };
}

}  // namespace
}  // namespace headrace::HEADRACE_ISA_NAMESPACE
