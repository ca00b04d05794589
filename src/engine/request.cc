// See headrace/request.h.
#include "headrace/request.h"

#include <bit>
#include <cstdint>

namespace headrace {

std::string prefix_scope(const std::string& cache_scope, std::span<const AdapterUse> adapters,
                         const ModelInfo& model) {
  std::string used;
  for (const AdapterUse& use : adapters) {
    if (use.strength == 0) continue;
    used += model.adapters[static_cast<size_t>(use.adapter)].digest + ' ' +
            std::to_string(std::bit_cast<uint32_t>(use.strength)) + ' ';
  }
  if (used.empty()) return cache_scope;
  // No scope of requests over HTTP begins like this: those begin with a digit. The length, so that
  // none goes on as adapters do.
  return "adapters " + std::to_string(cache_scope.size()) + ':' + cache_scope + used;
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace headrace
