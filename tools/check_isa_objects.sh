#!/bin/sh
# Checks that no instruction-set object of a Release build has a weak symbol.
#
# A kernel object is compiled with -mavx2, -mavx512 or -mamx-tile. If it holds a copy of a shared
# inline function (std::vector's, say), the linker may take that copy for the whole program, which
# then dies on an older machine. So kernel objects may define only their own kernels and functions with internal
# linkage. Debug builds do not inline and are not checked.
#
# Usage: tools/check_isa_objects.sh BUILD_DIR
set -eu

build=${1:?usage: tools/check_isa_objects.sh BUILD_DIR}
type=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$build/CMakeCache.txt")
if [ "$type" != Release ]; then
  echo "skipped: $build is a ${type:-unset} build, not Release"
  exit 77
fi

checked=0
faults=0
for object in $(find "$build" -path '*/headrace_kernels_*.dir/*' -name '*.o' | sort); do
  checked=$((checked + 1))
  # W, V: weak; u: unique in the whole program (static members of templates).
  weak=$(nm --defined-only --demangle "$object" | grep -E '^[0-9a-fA-F]* +[WVu] ' || true)
  if [ -n "$weak" ]; then
    faults=$((faults + 1))
    echo "$object defines weak symbols:"
    echo "$weak" | sed 's/^/  /'
  fi
done
echo "check_isa_objects: $checked objects, $faults with weak symbols"
[ "$checked" -gt 0 ] && [ "$faults" -eq 0 ]
