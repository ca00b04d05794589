// How an engine is set up. Must not know models.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend/kv_view.h"

namespace headrace {

class StepTurns;

struct EngineOptions {
  KvType kv_type = KvType::f16;
  int64_t context = 0;  ///< tokens a sequence may hold; 0: the model's
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 256;  ///< rows of a step; raised to max_sequences
  int64_t max_sequences = 1;   ///< running at once; others wait
  int64_t kv_tokens = 0;       ///< tokens the cache holds over all; 0: max_sequences * context
  uint64_t kv_bytes = 0;       ///< if not 0, as many tokens as fit, at most kv_tokens

  bool prefix_cache = true;
  bool kv_events = false;      ///< keep what Engine::take_kv_events() tells
  int64_t max_waiting = 4096;  ///< requests that may wait; more are refused
  /// Of their prompts, counted once for each choice; one request may always wait. 0: 64 contexts,
  /// at least 1 048 576. A bound that is never met: the largest int64_t.
  int64_t max_waiting_tokens = 0;
  /// The most that requests may ask for with num_logprobs and num_prompt_logprobs.
  int64_t max_logprobs = 20;
  /// A request whose reader leaves so much unread, about 7000 tokens without log-probabilities,
  /// pauses until half of it has been read. The events of one step may come on top.
  int64_t max_unread_bytes = 1 << 20;
  /// A request may wait this long for others to begin with it, even while there is a place.
  int64_t max_wait_ms = 0;
  int64_t aging_ms = 10000;  ///< after each such time of waiting a request counts as one class up
  /// Prompts are computed in pieces so small that a step takes at most this many times as long as
  /// one without them, where others generate; 0: as large as a step may be.
  double max_slowdown = 0;
  /// Of model and tokenizer: prefixes and sessions of others are not used.
  std::string model_fingerprint{};
  std::string tokenizer_fingerprint{};
  /// Called on the engine's thread when memory runs short, to empty caches of the process; may be
  /// empty.
  std::function<void()> drop_caches{};
  /// If not null, the engine takes its turn for each step, among all engines that were given the
  /// same: whose backends share their threads.
  std::shared_ptr<StepTurns> turns{};
};

}  // namespace headrace
