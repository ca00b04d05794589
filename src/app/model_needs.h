// What a model needs of memory, from its metadata alone or from the loaded model. Must not know how
// the need is shown.
#pragma once

#include <optional>
#include <vector>

#include "app/memory_plan.h"
#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "model/model.h"

namespace headrace {

/// The config of a checkpoint whose architecture this build knows. Errors: unsupported (it does not
/// know it), corrupt_data (a key is missing or of the wrong type).
Result<ModelConfig> read_model_config(const Checkpoint& checkpoint);

/// What each layer of a model of this config caches.
std::vector<CacheSpec> cache_specs_of(const ModelConfig& config);

/// The sizes of `config`; weights, caches, KV type and steps are the caller's to fill in.
MemoryNeeds needs_of_config(const ModelConfig& config, int64_t vocab_size);

}  // namespace headrace
