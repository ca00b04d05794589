// Q8Panel of kv_view.h as kernels are given it.
#pragma once

#include "backend/cpu/kernels/attention_args.h"
#include "backend/kv_view.h"

namespace headrace {

inline Q8Shape q8_shape(const KvPageLayout& layout) {
  const Q8Panel panel = layout.panel();
  return {.head_dim = layout.head_dim,
          .dim = panel.dim,
          .chunks = panel.chunks,
          .key_bytes = panel.key_bytes,
          .values = panel.values(),
          .key_scales = panel.key_scales(),
          .value_scales = panel.value_scales()};
}

}  // namespace headrace
