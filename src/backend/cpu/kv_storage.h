// The CPU's KV pages: one reservation, zero pages until touched.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace headrace {

/// Block-major: the pages of one block, layer by layer, are one stretch. Throws std::bad_alloc.
std::unique_ptr<KvStorage> allocate_cpu_kv(const KvPageLayout& layout, int64_t num_layers,
                                           int64_t num_blocks);

}  // namespace headrace
