// How exactly a matrix wants its input. Plain constants only: instruction-set files include this
// header.
#pragma once

#include <cstdint>

namespace headrace {

/// How exactly a weight matrix's input is represented while it is multiplied. What each means on an
/// instruction set: KernelTable::form. See docs/decisions/activation-precision.md.
enum class ActivationPrecision : uint8_t {
  standard,  ///< matrices inside layers
  high,      ///< the output head, whose rounding nothing averages out
};
inline constexpr int kNumActivationPrecisions = 2;

}  // namespace headrace
