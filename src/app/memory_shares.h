// One memory budget for several models: what each gets for its KV cache. Pure arithmetic. Must not
// know files or how a backend allocates.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/result.h"

namespace headrace {

/// What one of the models takes.
struct MemoryClaim {
  std::string name;
  uint64_t fixed_bytes = 0;     ///< weights and activations
  uint64_t least_kv_bytes = 0;  ///< below which it cannot run
  uint64_t kv_bytes = 0;        ///< that were asked for; 0: an equal share of what is left
};

/// Bytes of KV for each, in their order. Errors: resource_exhausted, with the name of the first
/// that does not fit beside those before it; or, where their least would fit, of one whose share of
/// what is left is too small.
Result<std::vector<uint64_t>> divide_memory(std::span<const MemoryClaim> claims,
                                            uint64_t budget_bytes);

/// A limit of which budget_bytes() of memory_plan.h is `budget`.
uint64_t limit_of_budget(uint64_t budget);

}  // namespace headrace
