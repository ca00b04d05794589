# Writes openapi.json into a C++ source.
#
# cmake -DINPUT=openapi.json -DOUTPUT=file.cc -P openapi.cmake
cmake_minimum_required(VERSION 3.25)
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "#include \"server/openapi.h\"

namespace headrace::server {

std::string_view openapi_text() {
  return R\"openapi(${text})openapi\";
}

}  // namespace headrace::server
")
