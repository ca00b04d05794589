// Names of the tensor type numbers that GGUF files may hold, known to this build or not.
#pragma once

#include <cstdint>
#include <string_view>

namespace headrace {

/// "IQ2_XXS" for 16; empty for a number that has no name.
std::string_view ggml_type_name(uint32_t ggml_type);

}  // namespace headrace
