// What the system says about an ARM processor.
#pragma once

namespace headrace {

struct ArmCapabilities {
  bool neon = false;         ///< 128-bit vectors with float32 and integers
  bool dot_product = false;  ///< FEAT_DotProd: sdot, udot
};

/// All false on other processors and other systems. Source: Linux,
/// Documentation/arch/arm64/elf_hwcaps.rst.
ArmCapabilities arm_capabilities();

}  // namespace headrace
