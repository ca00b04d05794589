// Where the time of a request went, and how an engine is doing. Part of the public C++ API.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/histogram.h"

namespace headrace {

/// Milliseconds and counts of one request.
struct RequestStats {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  ///< of the prompt, not computed again
  int64_t completion_tokens = 0;
  double queue_ms = 0;
  double prefill_ms = 0;        ///< from the first step to the first token
  double decode_ms = 0;         ///< from the first token to the last
  double sample_ms = 0;         ///< of which choosing tokens
  uint64_t seed = 0;            ///< the seed that was used
  int64_t num_preemptions = 0;  ///< times it gave its memory to others and began again
  std::string model;            ///< who answered; a lighter model, where one was allowed to

  double prefill_tokens_per_second() const {
    return prefill_ms > 0 ? 1e3 * static_cast<double>(prompt_tokens - cached_tokens) / prefill_ms
                          : 0;
  }
  double decode_tokens_per_second() const {
    return decode_ms > 0 ? 1e3 * static_cast<double>(completion_tokens - 1) / decode_ms : 0;
  }
};

/// What an engine does when memory runs short, in this order.
enum class MemoryRung : uint8_t {
  evict_prefixes,  ///< cached blocks that nobody uses are written over
  drop_caches,     ///< other caches of the process are emptied, where it has any
  stop_admitting,  ///< requests wait although there is a place for them
  shrink_chunks,   ///< prompts are computed in smaller pieces
  lower_batch,     ///< fewer run at once
  preempt,         ///< one begins again later
  lighter_model,   ///< one is answered by a lighter model, where that is allowed
  fail_request,    ///< one ends with an error
};
inline constexpr size_t kNumMemoryRungs = 8;
/// "evict_prefixes", ...
std::string_view memory_rung_name(MemoryRung rung);

/// The blocks of one cache group.
struct KvGroupStats {
  int64_t window = 0;  ///< 0: all tokens are kept
  int64_t block_tokens = 0;
  int64_t num_blocks = 0;
  int64_t num_held = 0;     ///< by requests
  int64_t num_cached = 0;   ///< by nobody, with a prefix in them
  int64_t live_tokens = 0;  ///< that requests may still read, in the held blocks
  uint64_t block_bytes = 0;
};

/// Rows of a step: vLLM's buckets of iteration_tokens_total.
inline constexpr std::array<double, 13> kStepRowsBounds{1,   8,    16,   32,   64,   128,  256,
                                                        512, 1024, 2048, 4096, 8192, 16384};
/// Seconds of a step.
inline constexpr std::array<double, 14> kStepSecondsBounds{
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};

/// Steps of decoding: those in which each sequence had one row, and its next token was chosen.
struct DecodeWork {
  int64_t num_steps = 0;
  /// Of these, of one sequence whose token the largest logits alone decided.
  int64_t num_top_steps = 0;
  int64_t ns = 0;        ///< from planning to the tokens
  int64_t kv_bytes = 0;  ///< keys and values of earlier steps that they read, each sequence its own

  DecodeWork& operator+=(const DecodeWork& other) {
    num_steps += other.num_steps;
    num_top_steps += other.num_top_steps;
    ns += other.ns;
    kv_bytes += other.kv_bytes;
    return *this;
  }
};

/// An engine at the end of a step. Counters count from its start.
struct EngineStats {
  // Now.
  int64_t num_running = 0;
  int64_t num_paused = 0;  ///< of these, that wait for their readers
  int64_t num_waiting = 0;
  int64_t waiting_tokens = 0;  ///< of prompts not yet begun
  int64_t batch_limit = 0;     ///< most that may run at once now
  std::vector<KvGroupStats> groups;

  // Counters.
  int64_t num_steps = 0;
  int64_t num_failed_steps = 0;
  int64_t step_rows = 0;      ///< tokens computed, over all steps
  int64_t prompt_rows = 0;    ///< of these, of prompts, and of what is computed again
  int64_t prompt_tokens = 0;  ///< of requests that began
  int64_t generated_tokens = 0;
  int64_t num_embeddings = 0;       ///< vectors and scores that came out
  int64_t prefix_query_tokens = 0;  ///< prompt tokens that were looked for in the prefix cache
  int64_t prefix_hit_tokens = 0;    ///< of these, found
  int64_t num_stopped = 0;          ///< completions by how they ended
  int64_t num_length = 0;
  int64_t num_cancelled = 0;
  int64_t num_errors = 0;      ///< requests that ended with an error
  int64_t num_expired = 0;     ///< of these, whose time had passed
  int64_t num_bad_logits = 0;  ///< of these, whose logits or embedding were no numbers
  int64_t num_pauses = 0;      ///< times that a sequence had to wait for its reader
  /// Times that the engine's own books were wrong: a fault of Headrace. All requests end with an
  /// internal error then, and it goes on with an empty cache.
  int64_t num_broken_invariants = 0;
  std::array<int64_t, kNumMemoryRungs> rungs{};  ///< times each MemoryRung was taken
  int64_t scheduling_ns = 0;                     ///< planning and committing steps
  int64_t forward_ns = 0;                        ///< the model
  int64_t sampling_ns = 0;                       ///< choosing tokens
  DecodeWork decode;
  /// Of these, those that ended in the last ten seconds (nine and a part); that goes on without
  /// steps too.
  DecodeWork recent_decode;
  /// Of the steps that num_steps counts: their rows, and how long they took from planning to the
  /// tokens.
  Histogram<kStepRowsBounds.size()> step_rows_histogram{.bounds = kStepRowsBounds};
  Histogram<kStepSecondsBounds.size()> step_seconds{.bounds = kStepSecondsBounds};

  int64_t rung(MemoryRung which) const { return rungs[static_cast<size_t>(which)]; }
  /// Live tokens over slots of held blocks, over all groups by bytes; 1 where nothing is held.
  double token_slot_utilisation() const;
  /// Held blocks over all, by bytes.
  double kv_usage() const;
};

}  // namespace headrace
