// A GGUF model as a Checkpoint: one file, or all parts of a split one. Owns the mappings.
#pragma once

#include <memory>
#include <string>

#include "base/os/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "headrace/result.h"

namespace headrace {

/// Reads `first`, and the other parts of the set if it is part 1 of a split model. Errors: those of
/// read_gguf; not_found names a missing part; invalid_argument for a part other than the first;
/// mismatch where the parts disagree.
Result<std::unique_ptr<Checkpoint>> open_gguf(MappedFile first);

}  // namespace headrace
