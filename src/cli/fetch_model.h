// Pulling a model for a person: progress bar, Ctrl-C, licence.
#pragma once

#include <string>

#include "headrace/result.h"
#include "store/model_store.h"

namespace headrace::cli {

/// Pulls `name` with a progress bar (on a terminal) and prints its licence on standard error;
/// returns the file's path. At once, and silent, if it is there. Ctrl-C: `cancelled`, nothing left.
/// For `headrace pull`, and for a command that finds the default model missing.
Result<std::string> fetch_model(const ModelStore& store, const std::string& name);

}  // namespace headrace::cli
