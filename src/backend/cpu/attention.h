// KV writes and attention over the pages of one layer.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cpu/context.h"

namespace headrace {

/// Contracts: Backend::kv_write, Backend::finish_qkv and Backend::attention.
void cpu_kv_write(CpuContext& context, const Tensor& k, const Tensor& v, const KvView& view,
                  std::span<const KvSequence> sequences);
void cpu_finish_qkv(CpuContext& context, const QkvTask& task, const KvView& view,
                    std::span<const KvSequence> sequences);
void cpu_attention(CpuContext& context, const Tensor& q, const KvView& view,
                   const AttentionParams& params, std::span<const KvSequence> sequences,
                   const Tensor& out);

}  // namespace headrace
