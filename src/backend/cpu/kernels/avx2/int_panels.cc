// Products with packed integer weights of the AVX2 path.
#include "backend/cpu/kernels/avx2/dot.inl"
// The shared body uses the dot product above.
#include "backend/cpu/kernels/body/int_panel.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

void int_panel_q4_0(const IntPanel& args) {
  int_panel<CodesU4, PanelScales::one, 8>(args);
}
void int_panel_q4_1(const IntPanel& args) {
  int_panel<CodesU4, PanelScales::with_min, 0>(args);
}
void int_panel_q5_0(const IntPanel& args) {
  int_panel<CodesU5, PanelScales::one, 16>(args);
}
void int_panel_q5_1(const IntPanel& args) {
  int_panel<CodesU5, PanelScales::with_min, 0>(args);
}
void int_panel_q8_0(const IntPanel& args) {
  int_panel<CodesS8, PanelScales::one, kSignedOffset>(args);
}
void int_panel_q4_k(const IntPanel& args) {
  int_panel<CodesU4, PanelScales::k_min, 0>(args);
}
void int_panel_q5_k(const IntPanel& args) {
  int_panel<CodesU5, PanelScales::k_min, 0>(args);
}
void int_panel_q6_k(const IntPanel& args) {
  int_panel<CodesU6, PanelScales::k_signed, 32>(args);
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
