// The functions between the products of a feed-forward block. Kernels include this: plain constants
// only.
#pragma once

#include <cstdint>

namespace headrace {

/// silu: x / (1 + e^-x). gelu: x Phi(x), Phi the normal distribution (arXiv:1606.08415); gelu_tanh
/// and quick_gelu are its approximations there, by tanh and as x / (1 + e^-1.702x). relu: max(x,
/// 0).
enum class Activation : uint8_t { silu, gelu_tanh, gelu, quick_gelu, relu };

}  // namespace headrace
