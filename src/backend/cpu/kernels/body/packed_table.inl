// The kernels of a table that multiplies packed weights.
#pragma once

#include "backend/cpu/kernels/body/float_table.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {
namespace {

constexpr KernelTable packed_table(const char* name, const PanelFunction* panels,
                                   const Q8Kernels* q8, Peak most) {
  KernelTable table = float_table(name, q8, most);
  table.quantize_row = quantize_row;
  table.int_panels = panels;
  table.f16_panels = f16_panels;
  table.bf16_panels = bf16_panels;
  return table;
}

}  // namespace
}  // namespace headrace::HEADRACE_ISA_NAMESPACE
