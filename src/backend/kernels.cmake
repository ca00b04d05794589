# The kernels of one instruction set: an object library with its own -m flags. The sources see the
# set's name, vector width and whether multiply-add rounds once; see docs/adding-a-kernel.md.
# headrace_kernels(set LANES n FMA 0|1 OPTIONS ... SOURCES ...)
set(HEADRACE_KERNEL_OBJECTS)
# Kernels are optimised in every build type, so that tests can afford them; under sanitizers less,
# since instrumented code of this kind takes minutes to optimise.
set(kernel_optimisation -O3)
if(HEADRACE_SANITIZE)
  set(kernel_optimisation -O1)
endif()
# The fuzzers count no branches in here, only in what calls the kernels: beside the sanitizers' checks
# it would take three times as long to compile.
set(kernel_coverage)
if(HEADRACE_BUILD_FUZZERS)
  set(kernel_coverage -fno-sanitize=fuzzer-no-link)
endif()
macro(headrace_kernels set)
  cmake_parse_arguments(ARG "" "LANES;FMA" "OPTIONS;SOURCES" ${ARGN})
  add_library(headrace_kernels_${set} OBJECT ${ARG_SOURCES})
  target_link_libraries(headrace_kernels_${set} PRIVATE headrace_flags)
  target_compile_definitions(headrace_kernels_${set} PRIVATE
    HEADRACE_ISA_NAMESPACE=${set} HEADRACE_LANES=${ARG_LANES} HEADRACE_FMA=${ARG_FMA})
  # GCC 12's own intrinsics headers set off the uninitialised warnings (GCC bug 105593).
  target_compile_options(headrace_kernels_${set} PRIVATE
    ${kernel_optimisation} ${kernel_coverage} ${ARG_OPTIONS} -Wno-uninitialized $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # One by one: how a loop is inlined and gets its registers must not depend on its neighbours.
  set_target_properties(headrace_kernels_${set} PROPERTIES UNITY_BUILD OFF)
  list(APPEND HEADRACE_KERNEL_OBJECTS $<TARGET_OBJECTS:headrace_kernels_${set}>)
endmacro()

set(reference_sources cpu/kernels/reference/attention_q8.cc
    cpu/kernels/reference/float_kernels.cc cpu/kernels/reference/limits.cc
    cpu/kernels/reference/sampling.cc cpu/kernels/reference/table.cc)
headrace_kernels(reference_baseline LANES 4 FMA 0 SOURCES ${reference_sources})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2_flags -mavx2 -mfma -mf16c)
  set(avx512_flags -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)
  headrace_kernels(reference_avx2 LANES 8 FMA 0 OPTIONS ${avx2_flags} SOURCES ${reference_sources})
  headrace_kernels(reference_avx512 LANES 16 FMA 0 OPTIONS ${avx512_flags}
                   SOURCES ${reference_sources})
  set(sources attention_q8.cc float_kernels.cc int_panels.cc limits.cc sampling.cc table.cc)
  list(TRANSFORM sources PREPEND cpu/kernels/avx2/ OUTPUT_VARIABLE avx2_sources)
  list(TRANSFORM sources PREPEND cpu/kernels/avx512/ OUTPUT_VARIABLE avx512_sources)
  list(APPEND avx512_sources cpu/kernels/avx512/quantize.cc)
  headrace_kernels(avx2 LANES 8 FMA 1 OPTIONS ${avx2_flags} SOURCES ${avx2_sources})
  headrace_kernels(avx2_vnni LANES 8 FMA 1 OPTIONS ${avx2_flags} -mavxvnni
                   SOURCES cpu/kernels/avx2/attention_q8_vnni.cc
                   cpu/kernels/avx2/int_panels_vnni.cc cpu/kernels/avx2/limits_vnni.cc)
  headrace_kernels(avx512 LANES 16 FMA 1 OPTIONS ${avx512_flags} -mavx512vnni
                   SOURCES ${avx512_sources})
  set(amx_sources limits.cc table.cc tile_panels.cc tile_rows.cc)
  list(TRANSFORM amx_sources PREPEND cpu/kernels/amx/)
  headrace_kernels(amx LANES 16 FMA 1
                   OPTIONS ${avx512_flags} -mavx512vnni -mavx512vbmi -mavx512bf16 -mamx-tile -mamx-bf16
                   SOURCES cpu/kernels/avx512/attention_q8.cc cpu/kernels/avx512/float_kernels.cc
                           cpu/kernels/avx512/sampling.cc ${amx_sources})
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(neon_sources attention_q8.cc float_kernels.cc int_panels.cc limits.cc sampling.cc table.cc)
  list(TRANSFORM neon_sources PREPEND cpu/kernels/neon/)
  headrace_kernels(neon LANES 4 FMA 1 SOURCES ${neon_sources})
  headrace_kernels(neon_dot LANES 4 FMA 1 OPTIONS -march=armv8.2-a+dotprod
                   SOURCES cpu/kernels/neon/int_panels_dot.cc cpu/kernels/neon/limits_dot.cc)
endif()
