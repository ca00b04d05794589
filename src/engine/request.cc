// See headrace/request.h.
#include "headrace/request.h"

#include <bit>
#include <cstdint>

namespace headrace {

std::string prefix_scope(const std::string& cache_scope, std::span<const AdapterUse> adapters,
                         const ModelInfo& model) {
  std::string out = cache_scope;
  for (const AdapterUse& use : adapters) {
    if (use.strength == 0) continue;
    // No scope holds this byte: those of others are text.
    out += '\0' + model.adapters[static_cast<size_t>(use.adapter)].digest + ' ' +
           std::to_string(std::bit_cast<uint32_t>(use.strength));
  }
  return out;
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
