// Pulling a model for a person: progress bar, Ctrl-C, licence.
#pragma once

#include <string>

#include "headrace/result.h"
#include "store/model_store.h"

namespace headrace::cli {

/// Pulls `reference` (ModelStore::fetch) with a progress bar (on a terminal) and says on standard
/// error what is downloaded, under which licence, and what it waits for. Silent where nothing is
/// downloaded. Ctrl-C: `cancelled`, and the next pull goes on from there.
Result<PulledModel> fetch_with_progress(const ModelStore& store, const std::string& reference,
                                        const PullOptions& options);

/// The same, and its path: for a command that finds the default model missing.
Result<std::string> fetch_model(const ModelStore& store, const std::string& name);

/// For -hf ORG/REPO[:FILE-OR-QUANTISATION]: what it was pulled as before, else what a pull gets;
/// where no hub can be reached, what of it is here, with a warning.
Result<std::string> fetch_from_hub(const std::string& repo);

}  // namespace headrace::cli
