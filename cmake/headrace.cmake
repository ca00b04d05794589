# headrace_library(name SOURCES ... LINK ...): one static library per src/ folder.
# headrace_test(name SOURCES ... LINK ... LABELS ...): one GoogleTest program.
# headrace_fuzz(name SOURCES ... LINK ...): one libFuzzer program.

# Folders whose tests run under the sanitizers in scripts/test: those that read untrusted input, and
# those with threads. A test outside them joins by the label asan or tsan.
set(HEADRACE_ASAN_FOLDERS base checkpoint text kv store api server cli)
set(HEADRACE_TSAN_FOLDERS engine)

add_library(headrace_flags INTERFACE)
target_compile_features(headrace_flags INTERFACE cxx_std_20)
target_include_directories(headrace_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
# Contraction would make one path round differently from another: see docs/architecture.md.
target_compile_options(headrace_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -ffp-contract=off
  $<$<BOOL:${HEADRACE_WERROR}>:-Werror>)
if(HEADRACE_SANITIZE)
  target_compile_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE})
endif()

function(headrace_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(headrace_${name} STATIC ${ARG_SOURCES})
  add_library(headrace::${name} ALIAS headrace_${name})
  target_link_libraries(headrace_${name} PUBLIC headrace_flags ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
endfunction()

# What scripts/test builds: of the preset tsan its tests, of the preset fuzz the others.
add_custom_target(asan_tests)
add_custom_target(tsan_tests)
add_custom_target(fuzz_all)

function(headrace_test name)
  if(NOT HEADRACE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main GTest::gmock)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})  # for "tests/..."
  target_compile_definitions(${name} PRIVATE HEADRACE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(HEADRACE_SANITIZE)  # where a test knows how long things take
    target_compile_definitions(${name} PRIVATE HEADRACE_SANITIZED)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  # A folder of its own for temporary files: two build trees may run their tests at once.
  set(tmp ${CMAKE_BINARY_DIR}/tests/tmp/${name}/)
  file(MAKE_DIRECTORY ${tmp})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "TEST_TMPDIR=${tmp}")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(CMAKE_CROSSCOMPILING)  # under emulation
    math(EXPR ARG_TIMEOUT "10 * ${ARG_TIMEOUT}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" folder "${folder}")
  foreach(kind ASAN TSAN)
    string(TOLOWER ${kind} label)
    if(folder IN_LIST HEADRACE_${kind}_FOLDERS)
      list(APPEND ARG_LABELS ${label})
    endif()
    if(label IN_LIST ARG_LABELS)
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
  if(ARG_LABELS)
    list(REMOVE_DUPLICATES ARG_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
endfunction()

# headrace_fuzz(name SOURCES ... LINK ...): one libFuzzer program, in the `fuzz` preset (clang) only.
function(headrace_fuzz name)
  if(NOT HEADRACE_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(fuzz_${name} ${ARG_SOURCES})
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_LINK})
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_all fuzz_${name})
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
