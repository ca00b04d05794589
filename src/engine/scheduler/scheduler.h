// Which sequences run, and which of their tokens a step computes. Owns all sequences and who holds
// which block. Must not know models, tensors or threads.
//
// There is no prefill or decode phase: a sequence's num_computed catches up with its num_tokens, as
// far as the step's rows reach. Sequences are admitted when a place is free and there are blocks
// for what they have; where blocks run out later, the last in the order of those that run gives its
// own up and is computed again later, to the same tokens.
//
// In three files: scheduler.cc (plan and commit a step), scheduler_admission.cc (who begins),
// scheduler_end.cc (how a sequence ends, what a failed step means, statistics).
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/scheduler/batch.h"
#include "engine/scheduler/decode_meter.h"
#include "engine/scheduler/sequence.h"
#include "engine/scheduler/step_pacer.h"
#include "engine/scheduler/waiting_queue.h"
#include "engine/scheduler/waiting_room.h"
#include "headrace/request.h"
#include "headrace/stats.h"
#include "kv/kv_cache.h"

namespace headrace {

struct SchedulerOptions {
  int64_t max_sequences = 1;   ///< running at once
  int64_t max_step_rows = 1;   ///< rows of a step; at least max_sequences
  int64_t max_logit_rows = 1;  ///< of these, rows with logits; at least max_sequences
  int64_t max_wait_ns = 0;     ///< for company, while a place is free
  int64_t aging_ns = 10'000'000'000;
  double max_slowdown = 0;  ///< see StepPacer
  /// A prompt is computed in one step, or not yet: of encoders. max_step_rows holds the longest.
  bool is_unchunked = false;
  std::string model_name;
  KvCacheOptions cache;
  std::vector<uint64_t> block_bytes;  ///< of each group, for statistics; empty: unknown
  std::function<void()> drop_caches;  ///< called when memory runs short; may be empty
};

/// What is to be told to whom.
struct OutgoingEvent {
  std::shared_ptr<Stream::Impl> stream;
  Event event;
};

class Scheduler {
 public:
  /// `num_blocks`: one number a geometry. `clock` must outlive the scheduler, as must `room` (may
  /// be null), which the sequences leave when they begin. Throws std::bad_alloc.
  Scheduler(const SchedulerOptions& options, std::span<const CacheGeometry> geometries,
            std::span<const int64_t> num_blocks, const Clock& clock, WaitingRoom* room = nullptr);
  ~Scheduler();

  /// Queues the choices of one request; each must fit the pools when it runs alone. Where this
  /// throws (memory), they are dropped and their stream broken off.
  void add(std::vector<std::unique_ptr<Sequence>> choices);
  /// Ends choices of a request at once; the blocks are free on return. Nothing where they have
  /// ended already. As with all ends: where there is no memory for the event, the stream is broken
  /// off.
  void cancel(Stream::Impl& stream, const std::bitset<kMaxChoices>& choices);
  void cancel_all();
  /// Ends all requests with an internal error and begins anew with an empty cache: for when an
  /// invariant is broken, so that the books cannot be trusted. Looks at as little of them as it
  /// can, checks nothing and needs no memory.
  void abandon_all() noexcept;
  /// Drops what is left of a request whose stream broke off. Not between plan_step() and commit or
  /// fail.
  void drop(Stream::Impl& stream);
  /// What running sequences hold becomes known again as they go on.
  void forget_prefixes();
  /// KvCache::restore; between two steps.
  Result<bool> restore_prefix(const BlockHash& root, std::span<const TokenId> tokens,
                              std::span<const int64_t> first,
                              FunctionRef<void(size_t group, int64_t index, int32_t block)> write,
                              FunctionRef<Result<void>()> accept) {
    return cache_.restore(root, tokens, first, write, accept);
  }

  bool is_idle() const { return sequences_.empty(); }
  /// When plan_step() is to be called again: 0 at once, kNever not before something is added.
  int64_t wake_ns() const { return is_idle() ? kNever : wake_ns_; }

  /// Fills in the next step: running sequences that need one row first, then the prompts of running
  /// ones, then waiting ones. Empty if nothing can be done before wake_ns(). Valid until commit or
  /// fail.
  Batch& plan_step();
  /// Takes the step's tokens over and ends what is finished. Where it throws (memory), the step is
  /// still to be failed.
  void commit();
  /// The step came to nothing, for nobody wants it. Its sequences are as they were before.
  void give_up();
  /// The step came to nothing. With `may_repeat`, its sequences begin again, each alone, and end
  /// with `error` if they fail there too; else they end with it now. All others go on.
  void fail(const Error& error, bool may_repeat);

  /// Events since the last call, in order.
  std::vector<OutgoingEvent>& events() { return events_; }
  PrefixLog& prefix_log() { return cache_.log(); }

  size_t num_waiting() const { return waiting_.size(); }
  size_t num_running() const { return running_.size(); }
  const KvCache& cache() const { return cache_; }
  const DecodeWindow& recent_decode() const { return decode_meter_.window(); }
  /// Where a step's time went.
  struct StepTimes {
    int64_t scheduling_ns = 0;
    int64_t model_ns = 0;  ///< forward pass and choice of tokens
  };
  void add_times(const StepTimes& times) {
    stats_.scheduling_ns += times.scheduling_ns;
    stats_.forward_ns += times.model_ns - last_sampling_ns_;
    stats_.sampling_ns += last_sampling_ns_;
  }
  /// As of the last commit. Reuses the memory of `stats`.
  void read_stats(EngineStats& stats) const;

  /// Throws InternalError unless the pools are sound and every block has the owners it counts.
  void check_invariants() const;

 private:
  // scheduler.cc
  void note_paused();
  void plan_generating();
  void plan_prompts();
  void plan_alone(Sequence& sequence);
  void preempt(Sequence& sequence);
  Sequence* last_to_run() const;
  Sequence* victim_of(const Sequence& sequence) const;
  bool make_room(Sequence& sequence, int64_t num_tokens);
  void raise_batch_limit();
  int64_t rows_of(const Sequence& sequence) const;
  int64_t rows_with_logits(const Sequence& sequence, int64_t rows) const;
  int64_t plan_prompt(Sequence& sequence);
  void add_rows(Sequence& sequence, int64_t num_rows);
  void reserve_commit();
  void record_step(const BatchSequence& part, int64_t now_ns) noexcept;
  void commit_token(Sequence& sequence, BatchSample& sample, int64_t now_ns);
  void commit_scores(const BatchSequence& part);
  void commit_embedding(Sequence& sequence, BatchEmbedding& embedding, int64_t now_ns);

  // scheduler_admission.cc
  void admit_waiting();
  Sequence* choose_next();
  int64_t length_beside(const Sequence& sequence) const;
  bool is_behind(const Sequence& sequence);
  bool may_begin(const Sequence& sequence);
  bool yield_paused();
  bool waits_for_prefix(Sequence& sequence, int64_t num_found) const;
  bool is_full();
  bool waits_for_company();
  bool has_room(Sequence& sequence);
  bool may_grow(const Sequence& sequence, size_t group) const;
  void admit(Sequence& sequence);
  void start_running(Sequence& sequence, int64_t num_computed);
  void fork_followers(Sequence& leader);
  void release_followers(Sequence& leader);
  void unfollow(Sequence& follower);
  Sequence* suspect_to_plan();

  // scheduler_end.cc
  void finish(Sequence& sequence, FinishReason reason, TokenId stop_token);
  void end(Sequence& sequence, Event event);
  void end_request(Stream::Impl& stream, const Error& error);
  void break_off(Stream::Impl& stream);
  void let_go(Sequence& sequence, bool keeps_prefix);
  void mark_ended(Sequence& sequence);
  void leave_room(Sequence& sequence) noexcept;
  void push_event(const std::shared_ptr<Stream::Impl>& stream, Event event);
  void remove_ended();
  void restart(Sequence& sequence);
  void abandon_copies();
  void expire(int64_t now_ns);
  void note_pressure();
  void check_owners(size_t group) const;
  static void note_preemption(Sequence& sequence) noexcept {
    ++sequence.num_preemptions;
    if (sequence.timeline) sequence.timeline->note_preemption();
  }
  void count(MemoryRung rung) { ++stats_.rungs[static_cast<size_t>(rung)]; }

  const SchedulerOptions options_;
  const Clock& clock_;
  WaitingRoom* const room_;
  KvCache cache_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // all, in no order
  WaitingQueue waiting_;
  std::vector<Sequence*> running_;  // in the order of class, then of admission
  int64_t num_admissions_ = 0;
  int64_t batch_limit_;
  int64_t num_calm_steps_ = 0;  // since a preemption, or since the limit was raised
  int64_t num_suspects_ = 0;
  bool has_ended_ones_ = false;
  bool is_short_ = false;  // of memory, and the caches have been dropped for it
  int64_t wake_ns_ = 0;
  int64_t next_deadline_ns_ = kNever;

  // Of the step that is planned.
  Batch batch_;
  int64_t num_paused_ = 0;         // of those that run
  bool waits_for_reader_ = false;  // somebody did not begin for it
  Sequence* planned_ = nullptr;    // the one being planned: whose fault an exception is
  int64_t num_generating_ = 0;
  int64_t num_prompt_rows_ = 0;
  int64_t prompt_rows_left_ = 0;
  int64_t planned_ns_ = 0;
  int64_t last_admitted_tokens_ = 0;  // 0: nobody was yet
  int64_t last_sampling_ns_ = 0;

  StepPacer pacer_;
  DecodeMeter decode_meter_;
  mutable std::vector<int32_t> num_owners_;  // by block; memory for check_invariants()
  std::vector<OutgoingEvent> events_;
  EngineStats stats_;
};

}  // namespace headrace
