// A shared library of the system that is loaded when it is first needed: one that few commands use
// would cost all of them memory and time at their start. Never unloaded.
#pragma once

#include <string>

#include "headrace/result.h"

namespace headrace {

class SharedLibrary {
 public:
  /// `name`: as the system's loader knows it ("libcurl.so.4"). Error: not_found.
  static Result<SharedLibrary> open(const std::string& name);

  /// Sets `function` to that of this name; false if the library has none.
  template <class Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address(name));
    return function != nullptr;
  }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* address(const char* name) const;

  void* handle_;
};

}  // namespace headrace
