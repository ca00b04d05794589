// For tests of logits.
#pragma once

#include <limits>

namespace headrace::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace headrace::test
