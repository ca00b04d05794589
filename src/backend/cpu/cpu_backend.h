// The CPU backend: packed weights, kernels chosen by instruction set, one thread pool.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"

namespace headrace {

struct KernelTable;

struct CpuBackendOptions {
  Isa isa = Isa::reference;
  int num_threads = 1;  ///< counts the calling thread
  bool pin = false;     ///< see ThreadPool
  /// Output heads are packed so that linear_top is fast.
  bool searches_top = true;
  /// If not null, these threads instead of num_threads of its own; `pin` is then the pool's affair.
  std::shared_ptr<ThreadPool> pool = nullptr;
};

/// Operations run on the thread that calls them plus num_threads - 1 pool threads; one caller at a
/// time, over all backends of a pool. `options.isa` must be one of available_isas().
std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options);

/// The same with one table of several that an instruction set may have, for tests.
std::unique_ptr<Backend> make_cpu_backend(const KernelTable& kernels, int num_threads,
                                          bool pin = false);

}  // namespace headrace
