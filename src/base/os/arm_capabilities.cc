// See arm_capabilities.h.
#include "base/os/arm_capabilities.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace headrace {

ArmCapabilities arm_capabilities() {
  ArmCapabilities arm;
#if defined(__aarch64__) && defined(__linux__)
  const unsigned long bits = getauxval(AT_HWCAP);
  arm.neon = (bits & HWCAP_ASIMD) != 0;
  arm.dot_product = (bits & HWCAP_ASIMDDP) != 0;
#endif
  return arm;
}

}  // namespace headrace
