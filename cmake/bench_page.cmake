# Writes the C++ source of the benchmark's page: the template with Chart.js put in.
#
# cmake -DTEMPLATE=... -DCHART_JS=FILE-or-empty -DOUTPUT=... -P bench_page.cmake
cmake_minimum_required(VERSION 3.25)
file(READ ${TEMPLATE} page)
set(has_chart false)
set(chart "")
if(CHART_JS)
  file(READ ${CHART_JS} chart)
  # Addresses in its licence notes: nothing in the page shall look like a link to elsewhere.
  string(REPLACE "https://" "" chart "${chart}")
  set(has_chart true)
endif()
string(FIND "${page}" "/*CHART_JS*/" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${TEMPLATE} has no place for Chart.js")
endif()
# Not string(REPLACE): Chart.js may hold anything.
string(SUBSTRING "${page}" 0 ${at} before)
math(EXPR after_at "${at} + 12")
string(SUBSTRING "${page}" ${after_at} -1 after)
set(whole ${OUTPUT}.html)
file(WRITE ${whole} "${before}" "${chart}" "${after}")
file(READ ${whole} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
file(WRITE ${OUTPUT} "// Made by cmake/bench_page.cmake.
#include \"cli/bench_page.h\"

namespace headrace::cli {

const size_t kBenchPageSize = ${size};
const bool kBenchPageHasChart = ${has_chart};
const unsigned char kBenchPage[] = {
${hex}};

}  // namespace headrace::cli
")
