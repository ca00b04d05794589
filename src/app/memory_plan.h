// What a model needs of memory: weights, KV cache, activations, and the largest context that fits.
// Pure arithmetic over what model/ says of a config; sums that do not fit 64 bits are the largest
// number. Must not know files or how a backend allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/kv_view.h"
#include "model/adapters/adapter_sizes.h"
#include "model/blocks/activations.h"
#include "model/config.h"
#include "model/model.h"

namespace headrace {

/// What the plan is made from.
struct MemoryNeeds {
  uint64_t weight_bytes = 0;      ///< in memory
  uint64_t file_bytes = 0;        ///< of weights that stay in their file, which take no memory
  uint64_t scratch_bytes = 0;     ///< what these are made in when they are used
  uint64_t adapter_bytes = 0;     ///< of adapters' matrices
  std::vector<CacheSpec> caches;  ///< one a layer
  ActivationSizes activations;
  AdapterSizes adapters;
  KvType kv_type = KvType::f16;
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 256;  ///< rows of one step
  int64_t logit_rows = 1;      ///< rows of one step that get logits
};

/// Caches and activations of a model of this config; weights, KV type and steps are the caller's to
/// fill in.
MemoryNeeds memory_needs(const ModelConfig& config, int64_t vocab_size);

/// Bytes of KV that one sequence of `tokens` tokens needs: whole blocks; a window layer keeps its
/// window, one step's tokens and a block that is partly behind the window.
uint64_t kv_bytes(const MemoryNeeds& needs, int64_t tokens);

/// Bytes of KV that one more token costs before any window is full, f.e. 23040 for SmolLM2-135M.
uint64_t kv_bytes_per_token(const MemoryNeeds& needs);

/// Weights in memory, adapters, and scratch.
uint64_t resident_bytes(const MemoryNeeds& needs);

/// An estimate of the activations of a step: the model's buffers, those for what adapters add, and
/// one copy of the widest rows for what a backend makes of its input.
uint64_t activation_bytes(const MemoryNeeds& needs);

/// What is resident, activations and the KV of `tokens` tokens.
uint64_t total_bytes(const MemoryNeeds& needs, int64_t tokens);

/// What of `limit_bytes` a model may take: a tenth is left to the rest of the process and the
/// system.
uint64_t budget_bytes(uint64_t limit_bytes);

/// The largest number of tokens (a multiple of a block, at most `most`) whose KV fits beside
/// weights and activations in budget_bytes(limit_bytes). 0: not even one block fits.
int64_t largest_context(const MemoryNeeds& needs, uint64_t limit_bytes, int64_t most);

}  // namespace headrace
