# Writes the C++ source of the benchmark's pages: the templates with their common parts put in, and
# Chart.js once for all of them.
#
# cmake -DFOLDER=... -DCHART_JS=FILE-or-empty -DOUTPUT=... -P bench_pages.cmake
cmake_minimum_required(VERSION 3.25)

# Sets `variable` to `text` with the first `mark` replaced. Not string(REPLACE) or a list: the parts
# may hold anything.
function(put_in variable text mark part)
  string(FIND "${text}" "${mark}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "no place for ${mark}")
  endif()
  string(LENGTH "${mark}" length)
  math(EXPR after_at "${at} + ${length}")
  string(SUBSTRING "${text}" 0 ${at} before)
  string(SUBSTRING "${text}" ${after_at} -1 after)
  set(${variable} "${before}${part}${after}" PARENT_SCOPE)
endfunction()

# Appends the bytes of a file as arrays `name` and `nameSize`.
function(embed name file)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  file(APPEND ${OUTPUT} "const size_t ${name}Size = ${size};
const unsigned char ${name}[] = {
${hex}};

")
endfunction()

set(has_chart false)
set(chart " ")
if(CHART_JS)
  file(READ ${CHART_JS} chart)
  # Addresses in its licence notes: nothing in a page shall look like a link to elsewhere.
  string(REPLACE "https://" "" chart "${chart}")
  set(has_chart true)
endif()
file(READ ${FOLDER}/page.css style)
file(READ ${FOLDER}/page.js parts)

file(WRITE ${OUTPUT} "// Made by cmake/bench_pages.cmake.
#include \"cli/bench/bench_page.h\"

namespace headrace::cli {

const bool kBenchPageHasChart = ${has_chart};
")
file(WRITE ${OUTPUT}.part "${chart}")
embed(kChartJs ${OUTPUT}.part)
foreach(page bench:kBenchPage load:kLoadPage)
  string(REGEX REPLACE ":.*" "" file ${page})
  string(REGEX REPLACE ".*:" "" name ${page})
  file(READ ${FOLDER}/${file}_page.html text)
  put_in(text "${text}" "/*STYLE*/" "${style}")
  put_in(text "${text}" "/*PARTS*/" "${parts}")
  file(WRITE ${OUTPUT}.part "${text}")
  embed(${name} ${OUTPUT}.part)
endforeach()
file(APPEND ${OUTPUT} "}  // namespace headrace::cli
")
