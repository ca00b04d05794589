// See cache_groups.h.
#include "model/cache_groups.h"

#include <algorithm>

namespace headrace {

CacheGroups group_layers(std::span<const CacheSpec> specs) {
  CacheGroups out;
  for (const CacheSpec& spec : specs) {
    if (spec.kind == CacheSpec::Kind::none) {
      out.layers.push_back({});
      continue;
    }
    auto found = std::find_if(out.groups.begin(), out.groups.end(),
                              [&](const auto& group) { return group.spec == spec; });
    if (found == out.groups.end()) found = out.groups.insert(found, {spec, 0});
    out.layers.push_back({static_cast<int32_t>(found - out.groups.begin()),
                          static_cast<int32_t>(found->num_layers++)});
  }
  return out;
}

}  // namespace headrace
