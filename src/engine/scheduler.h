// Which sequences run, and which of their tokens a step computes. Owns all sequences and the block
// pools. Must not know models, tensors or threads.
//
// There is no prefill or decode phase: a sequence's num_computed catches up with its num_tokens, as
// far as the step's rows reach. Admission is first come, first served: a sequence is admitted when
// a place is free and the blocks for its whole length can be reserved, so that it never has to be
// stopped half way; else it and those behind it wait.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/batch.h"
#include "engine/sequence.h"
#include "headrace/request.h"
#include "kv/cache_group.h"

namespace headrace {

struct SchedulerOptions {
  int64_t max_sequences = 1;  ///< running at once
  int64_t max_step_rows = 1;  ///< rows of a step; at least max_sequences
};

/// What is to be told to whom.
struct OutgoingEvent {
  std::shared_ptr<Stream::Impl> stream;
  Event event;
};

class Scheduler {
 public:
  /// `num_blocks`: one number a geometry. `clock` must outlive the scheduler.
  Scheduler(const SchedulerOptions& options, std::span<const CacheGeometry> geometries,
            std::span<const int64_t> num_blocks, const Clock& clock);

  /// Queues a sequence; it must fit the pools when it runs alone. Where this throws (memory), the
  /// sequence is dropped and its stream broken off.
  void add(std::unique_ptr<Sequence> sequence);
  /// Ends a sequence at once; its blocks are free on return. Unknown ids have ended already. As
  /// with all ends: where there is no memory for the event, the stream is broken off.
  void cancel(uint64_t sequence_id);
  void cancel_all();
  /// Drops the sequences whose streams broke off. Not between plan_step() and commit or fail.
  void remove_broken_off();

  bool is_idle() const { return waiting_.empty() && running_.empty(); }

  /// Fills in the next step: running sequences that need one row first, then the prompts of running
  /// ones, then waiting ones; a long prompt takes what rows are left. Valid until commit or fail.
  Batch& plan_step();
  /// Takes the step's tokens over and ends what is finished.
  void commit();
  /// The step came to nothing: its sequences end with `error`, the others go on.
  void fail(const Error& error);

  /// Events since the last call, in order.
  std::vector<OutgoingEvent>& events() { return events_; }

  size_t num_waiting() const { return waiting_.size(); }
  size_t num_running() const { return running_.size(); }
  const std::deque<CacheGroup>& groups() const { return groups_; }

  /// Throws InternalError unless the pools are sound and every block has the owners it counts.
  void check_invariants() const;

 private:
  bool can_admit(const Sequence& sequence) const;
  void admit_waiting();
  void plan_rows(Sequence& sequence);
  void commit_token(Sequence& sequence, BatchSample& sample, int64_t now_ns);
  void finish(Sequence& sequence, FinishReason reason, TokenId stop_token);
  void end(Sequence& sequence, Event event);
  void remove_ended();

  const SchedulerOptions options_;
  const Clock& clock_;
  std::deque<CacheGroup> groups_;  // tables keep their addresses
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // in order of admission
  Batch batch_;
  std::vector<OutgoingEvent> events_;
};

}  // namespace headrace
