// A pull of the catalogue: lock, room on the disk, packages, checksum, name.
#pragma once

#include <string>

#include "headrace/result.h"
#include "store/model_store.h"
#include "store/pull_hooks.h"

namespace headrace {

/// ModelStore::pull for a known entry of one GGUF file; `root` is made if absent.
Result<std::string> pull_into(const std::string& root, const CatalogEntry& entry,
                              const PullHooks& hooks, const PullOptions& options);

}  // namespace headrace
