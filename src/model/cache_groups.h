// Which layers cache alike: the one answer that model, engine and session share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace headrace {

struct LayerCache {
  int32_t group = -1;  ///< -1: the layer caches nothing
  int32_t layer_in_group = 0;
};

struct CacheGroups {
  struct Group {
    CacheSpec spec;
    int64_t num_layers = 0;
  };
  std::vector<Group> groups;       ///< in order of their first layer
  std::vector<LayerCache> layers;  ///< one a layer of the model
};

/// Layers of equal CacheSpec form a group.
CacheGroups group_layers(std::span<const CacheSpec> specs);

}  // namespace headrace
