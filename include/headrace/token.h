// The type of a token id. Part of the public C++ API.
#pragma once

#include <cstdint>

namespace headrace {

using TokenId = int32_t;

}  // namespace headrace
