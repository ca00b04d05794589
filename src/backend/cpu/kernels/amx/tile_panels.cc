// Products with packed weights of the AMX path, by format.
#include "backend/cpu/kernels/amx/tile_panels.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

const TileFunction tile_panels[kNumPanelFormats] = {
    headrace::tile_panels<DecodeU4<PanelScales::one, 8>>,
    headrace::tile_panels<DecodeU4<PanelScales::with_min, 0>>,
    headrace::tile_panels<DecodeU5<PanelScales::one, 16>>,
    headrace::tile_panels<DecodeU5<PanelScales::with_min, 0>>,
    headrace::tile_panels<DecodeS8>,
    headrace::tile_panels<DecodeU4<PanelScales::k_min, 0>>,
    headrace::tile_panels<DecodeU5<PanelScales::k_min, 0>>,
    headrace::tile_panels<DecodeU6>,
    headrace::tile_panels<DecodeF16>,
    headrace::tile_panels<DecodeBf16>,
};

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
