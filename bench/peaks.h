// What one thread of this machine can do at most, measured: the bounds that kernels are compared
// with. Each figure is the best of many short tries, so that a busy machine matters little.
#pragma once

#include <string>
#include <vector>

namespace headrace {

struct Peak {
  std::string name;
  double per_second = 0;  ///< multiply-adds, or bytes
};

/// Cycles a second while integers are added one after the other.
double cycles_per_second();

/// Multiply-adds a second of each instruction that kernels use and this machine has: "fma ymm",
/// "maddubs ymm", "dpbusd ymm", "fma zmm", "dpbusd zmm".
std::vector<Peak> arithmetic_peaks();

/// Bytes a second that one thread reads from memory, from an area that no cache holds.
double read_bandwidth();

}  // namespace headrace
