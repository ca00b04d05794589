// A model of the store as `pull`, `list` and `show` print it for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "store/model_store.h"

namespace headrace::cli {

/// {name, path, size_bytes, format, quantization, source, license, license_note, sha256,
/// in_hub_cache, files: [{path, size_bytes, sha256}]}; sha256 is the only file's, or the
/// catalogue's.
nlohmann::json model_json(const StoredModel& model, const ModelStore& store);

}  // namespace headrace::cli
