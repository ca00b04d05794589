// One pull: lock, room on the disk, packages, checksum, name.
#pragma once

#include <functional>
#include <string>

#include "headrace/result.h"
#include "store/model_store.h"

namespace headrace {

/// ModelStore::pull for a known entry; `root` is made if absent.
Result<std::string> pull_into(const std::string& root, const CatalogEntry& entry,
                              const std::function<void(const PullProgress&)>& progress,
                              const std::function<bool()>& keep_going);

/// Removes what killed pulls into `root` left; a pull that is under way keeps its folder.
void remove_stale_pulls(const std::string& root);

}  // namespace headrace
