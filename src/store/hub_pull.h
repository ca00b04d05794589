// A model of a hub into the cache that other tools share.
#pragma once

#include "headrace/result.h"
#include "store/hub_settings.h"
#include "store/model_record.h"
#include "store/model_source.h"
#include "store/pull_hooks.h"

namespace headrace {

/// Fetches what `source` means (a Hub one) and records it in `records`; what the cache has is not
/// fetched again, whoever put it there. Offline: only looks. Errors: those of select_files, of
/// download_file and of the cache; resource_exhausted (disk).
Result<PulledModel> pull_from_hub(const ModelSource& source, const HubSettings& settings,
                                  const RecordBook& records, const PullHooks& hooks,
                                  const PullOptions& options);

}  // namespace headrace
