// A request's state in the engine. Owned by the scheduler, touched by the engine's thread only (its
// stream aside, which has a lock of its own).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/stream_impl.h"
#include "headrace/request.h"
#include "kv/block_table.h"
#include "sampling/chain.h"

namespace headrace {

/// When things happened to a sequence, by the engine's clock; -1: not yet.
struct SequenceTimes {
  int64_t submitted_ns = -1;
  int64_t first_step_ns = -1;
  int64_t first_token_ns = -1;
  int64_t last_token_ns = -1;
  int64_t sampling_ns = 0;  ///< spent on choosing tokens, in all
};

struct Sequence {
  Sequence(uint64_t id, Request request, std::vector<TokenId> end_tokens, uint64_t seed);
  /// A sequence that is dropped before its end tells its reader so.
  ~Sequence();
  Sequence(const Sequence&) = delete;  // the chain keeps the address of the request
  Sequence& operator=(const Sequence&) = delete;

  const uint64_t id;
  const Request request;
  const std::vector<TokenId> end_tokens;  ///< those that end this request
  const Chain chain;
  std::shared_ptr<Stream::Impl> stream;
  int64_t max_tokens = 0;  ///< prompt and completion together never exceed it

  std::vector<TokenId> tokens;     ///< prompt and completion
  int64_t num_computed = 0;        ///< of these, whose keys and values are cached
  std::vector<BlockTable> tables;  ///< one a cache group, once admitted
  SequenceTimes times;
  bool has_ended = false;  ///< its last event is out; it holds no blocks

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_prompt_tokens() const { return static_cast<int64_t>(request.prompt.size()); }
  int64_t num_generated() const { return num_tokens() - num_prompt_tokens(); }
};

}  // namespace headrace
