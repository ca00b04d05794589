# Compresses the page's files and writes the C++ source of their table; the bytes come in by the
# assembler's .incbin.
#
# cmake -DLIST=assets.txt -DPAGE=folder -DOUTPUT=file.cc -DFOLDER=for-compressed-files -P web_assets.cmake
cmake_minimum_required(VERSION 3.25)

set(type_.html "text/html; charset=utf-8")
set(type_.css "text/css; charset=utf-8")
set(type_.js "text/javascript; charset=utf-8")
set(type_.svg "image/svg+xml")
set(type_.txt "text/plain; charset=utf-8")

file(MAKE_DIRECTORY ${FOLDER})
file(STRINGS ${LIST} lines REGEX "^/")
list(SORT lines COMPARE STRING)
set(blobs "")
set(declarations "")
set(rows "")
set(index 0)
foreach(line ${lines})
  string(REGEX REPLACE " +" ";" fields "${line}")
  list(GET fields 0 url)
  list(GET fields 1 file)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${PAGE})
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  if(extension STREQUAL "")  # Debian's copyright files
    set(extension .txt)
  endif()
  if(NOT DEFINED type_${extension})
    message(FATAL_ERROR "${file}: no content type for ${extension}")
  endif()
  set(compressed ${FOLDER}/${index}.gz)
  # Through standard input and without -N: no name and no time get into it.
  execute_process(COMMAND gzip -9n INPUT_FILE ${file} OUTPUT_FILE ${compressed} COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 ${compressed} hash)
  string(SUBSTRING ${hash} 0 24 hash)
  file(SIZE ${compressed} gzip_bytes)
  file(SIZE ${file} plain_bytes)
  set(symbol headrace_web_asset_${index})
  string(APPEND blobs "asm(\".section .rodata\\n.balign 16\\n.global ${symbol}\\n.hidden ${symbol}\\n${symbol}:\\n.incbin \\\"${compressed}\\\"\\n.previous\\n\");\n")
  string(APPEND declarations "extern \"C\" __attribute__((visibility(\"hidden\"))) const char ${symbol}[];\n")
  string(APPEND rows "    {\"${url}\", \"${type_${extension}}\", {${symbol}, ${gzip_bytes}}, \"\\\"${hash}\\\"\", ${plain_bytes}},\n")
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE ${OUTPUT} "// Made by src/web/web_assets.cmake.
#include \"web/web_assets.h\"

${blobs}
${declarations}
namespace headrace::web {

std::span<const WebAsset> web_assets() {
  static const WebAsset kAssets[] = {
${rows}  };
  return kAssets;
}

}  // namespace headrace::web
")
