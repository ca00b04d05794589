// One model file from an address into the store's folder.
#pragma once

#include "headrace/result.h"
#include "store/model_record.h"
#include "store/model_source.h"
#include "store/pull_hooks.h"

namespace headrace {

/// Fetches `source` (an address) as ROOT/NAME.gguf and records it. Plain http is for this machine
/// alone, or with a checksum. Errors: invalid_argument, mismatch (another file has the name), those
/// of download_file, resource_exhausted (disk).
Result<PulledModel> pull_from_url(const ModelSource& source, const std::string& root,
                                  const RecordBook& records, const PullHooks& hooks,
                                  const PullOptions& options);

/// That `name` may name a model in the store. Errors: invalid_argument.
Result<void> check_model_name(const std::string& name);

/// That nothing but `source` has the name, as a record or a file. True: it is here already. Errors:
/// mismatch.
Result<bool> is_pulled_already(const std::string& root, const RecordBook& records,
                               const std::string& name, const std::string& source);

}  // namespace headrace
