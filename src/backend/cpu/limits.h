// What the machine can do at most with the threads and kernels of a CPU backend: the bounds beside
// a benchmark's figures.
#pragma once

#include <cstddef>

#include "backend/cpu/context.h"

namespace headrace {

/// Multiply-adds a second of KernelTable::peak on all threads at once.
double measure_cpu_peak(CpuContext& context);

/// Bytes a second of reading `bytes` of memory over and over, each thread its own share. What fits
/// a cache is read from there, as a model of that size would be. Takes about `seconds`, besides the
/// time to make the memory; more where four passes take longer. Throws std::bad_alloc.
double measure_cpu_read_rate(CpuContext& context, size_t bytes, double seconds);

}  // namespace headrace
