// See amx_permission.h.
#include "base/os/amx_permission.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace headrace {

bool request_amx_permission() {
#if defined(__x86_64__) && defined(__linux__)
  // From asm/prctl.h and asm/fpu/types.h of Linux 5.16, which older headers lack.
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace headrace
