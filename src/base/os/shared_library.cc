// See shared_library.h.
#include "base/os/shared_library.h"

#include <dlfcn.h>

namespace headrace {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(handle);
  return Error{ErrorCode::not_found, "the library " + name + " cannot be loaded", "",
               "install it with the system's package manager"};
}

void* SharedLibrary::address(const char* name) const {
  return ::dlsym(handle_, name);
}

}  // namespace headrace
