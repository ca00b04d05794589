# HEADRACE_ONLY_ENGINE: what it and its tests need, without packages for the target. GoogleTest is
# compiled from its Debian source package; xxHash and nlohmann-json are used as headers only, reached
# through links, since nothing else of the build machine's /usr/include must be seen.
set(header_links ${CMAKE_BINARY_DIR}/header_links)
file(MAKE_DIRECTORY ${header_links})
set(HEADRACE_XXHASH_HEADER /usr/include/xxhash.h CACHE FILEPATH "xxHash's header (Debian: libxxhash-dev)")
file(CREATE_LINK ${HEADRACE_XXHASH_HEADER} ${header_links}/xxhash.h SYMBOLIC)
set(XXHASH_INCLUDE_DIR ${header_links})
set(HEADRACE_NLOHMANN_HEADERS /usr/include/nlohmann CACHE PATH "Headers of nlohmann-json")
file(CREATE_LINK ${HEADRACE_NLOHMANN_HEADERS} ${header_links}/nlohmann SYMBOLIC)
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${header_links})

if(NOT HEADRACE_BUILD_TESTS)
  return()
endif()
set(INSTALL_GTEST OFF)
set(HEADRACE_GOOGLETEST_SOURCE /usr/src/googletest CACHE PATH "Source of GoogleTest (Debian: googletest)")
add_subdirectory(${HEADRACE_GOOGLETEST_SOURCE} googletest EXCLUDE_FROM_ALL)
