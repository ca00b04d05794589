// One completion's state in the engine. Owned by the scheduler, touched by the engine's thread only
// (its stream aside, which has a lock of its own).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "engine/scheduler/timeline_recorder.h"
#include "engine/stream_impl.h"
#include "headrace/request.h"
#include "kv/kv_cache.h"
#include "sampling/chain.h"

namespace headrace {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// When things happened to a sequence, by the engine's clock; -1: not yet.
struct SequenceTimes {
  int64_t submitted_ns = -1;
  int64_t first_step_ns = -1;
  int64_t first_token_ns = -1;
  int64_t last_token_ns = -1;
  int64_t sampling_ns = 0;  ///< spent on choosing tokens, in all
};

/// What one owner asks of one class; see WaitingQueue.
struct OwnerLine {
  double next_tag = 0;  ///< where its next request begins
  int64_t last_admission_ns = 0;
  int64_t num_waiting = 0;
};

/// Its place in the order of those that wait; see WaitingQueue.
struct WaitingKey {
  int32_t priority = 0;  ///< with the time waited taken off
  double tag = 0;        ///< fairness among owners
  std::shared_ptr<OwnerLine> line;
};

/// What a request counts as while it waits: its prompt, once for each choice.
inline int64_t waiting_tokens(const Request& request) {
  return static_cast<int64_t>(request.prompt.size()) * request.num_choices;
}

struct Sequence {
  Sequence(std::shared_ptr<Stream::Impl> stream, std::shared_ptr<const Request> request,
           std::shared_ptr<const std::vector<TokenId>> end_tokens, uint64_t seed, int32_t choice);
  /// A sequence that is dropped before its end tells its reader so.
  ~Sequence();
  Sequence(const Sequence&) = delete;  // others keep its address
  Sequence& operator=(const Sequence&) = delete;

  const std::shared_ptr<Stream::Impl> stream;
  const std::shared_ptr<const Request> request;
  const int32_t choice;
  const std::shared_ptr<const std::vector<TokenId>> end_tokens;  ///< those that end this request
  Chain chain;             ///< outlives a preemption: it may know more than the tokens
  int64_t max_tokens = 0;  ///< prompt and completion together never exceed it
  int64_t deadline_ns = kNever;

  std::vector<TokenId> tokens;  ///< prompt and completion; empty until it begins
  int64_t num_computed = 0;     ///< of these, whose keys and values are cached
  CachedTokens cached;
  std::vector<double> pooled;  ///< of kind embed: the runner's sum over the rows so far
  int64_t num_scored = 1;      ///< prompt tokens whose log-probability is out; the first has none
  int64_t num_found = -1;      ///< prompt tokens that were cached when it began; -1: not yet
  int64_t num_preemptions = 0;
  SequenceTimes times;
  std::shared_ptr<TimelineRecorder> timeline;  ///< null where its request keeps none

  // Of the scheduler.
  WaitingKey key;
  int64_t admission = 0;       ///< counts admissions: its rank among those that run
  int32_t num_passed = 0;      ///< times another one was admitted before its turn
  int32_t num_followers = 0;   ///< choices of its request that begin with its computed prompt
  Sequence* leader = nullptr;  ///< whom it follows
  bool is_running = false;
  bool is_paused = false;    ///< runs, but is in no step: its reader is behind
  bool is_suspect = false;   ///< a step with it failed: it must pass one alone
  bool holds_place = false;  ///< counts as waiting in the WaitingRoom
  bool has_ended = false;    ///< its last event is out; it holds no blocks

  /// Prompt and completion. Choices that wait share the prompt of their request.
  std::span<const TokenId> all_tokens() const { return tokens.empty() ? request->prompt : tokens; }
  int64_t num_tokens() const { return static_cast<int64_t>(all_tokens().size()); }
  int64_t num_prompt_tokens() const { return static_cast<int64_t>(request->prompt.size()); }
  int64_t num_generated() const { return num_tokens() - num_prompt_tokens(); }
  bool generates() const { return request->kind == RequestKind::generate; }
  /// Whether what is asked of the row at `position` is its vector.
  bool is_pooled(int64_t position) const {
    if (generates()) return false;
    if (request->kind == RequestKind::score || *request->pooling == Pooling::cls) {
      return position == 0;
    }
    return *request->pooling == Pooling::mean || position == num_prompt_tokens() - 1;
  }
  bool wants_scores() const { return request->num_prompt_logprobs >= 0 && choice == 0; }
  /// Up to where it is computed next: all its tokens, but the last of the prompt while others wait
  /// to begin there.
  int64_t target() const { return num_followers > 0 ? num_prompt_tokens() - 1 : num_tokens(); }
};

}  // namespace headrace
