// See ggml_type_name.h. Source of the numbers: PyPI's `gguf`, GGMLQuantizationType.
#include "checkpoint/ggml_type_name.h"

#include "quant/format.h"

namespace headrace {
namespace {

struct TypeName {
  uint32_t ggml_type;
  std::string_view name;
};

constexpr TypeName kUndecodable[] = {
    {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},      {25, "I16"},    {26, "I32"},     {27, "I64"},
    {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {40, "NVFP4"},   {41, "Q1_0"},
};

}  // namespace

std::string_view ggml_type_name(uint32_t ggml_type) {
  if (const auto format = format_from_ggml_type(ggml_type)) return format_traits(*format).name;
  for (const TypeName& entry : kUndecodable) {
    if (entry.ggml_type == ggml_type) return entry.name;
  }
  return {};
}

}  // namespace headrace
