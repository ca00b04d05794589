// See scheduler.h. Here: how sequences end, what a failed step means, statistics.
#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"
#include "engine/scheduler/scheduler.h"

namespace headrace {
namespace {

double milliseconds(int64_t from_ns, int64_t to_ns) {
  return from_ns < 0 || to_ns < from_ns ? 0 : static_cast<double>(to_ns - from_ns) * 1e-6;
}

RequestStats stats_of(const Sequence& sequence, int64_t now_ns, const std::string& model_name) {
  const SequenceTimes& times = sequence.times;
  const bool has_started = times.first_step_ns >= 0;
  const bool has_token = times.first_token_ns >= 0;
  RequestStats stats;
  stats.prompt_tokens = sequence.num_prompt_tokens();
  stats.cached_tokens = std::max<int64_t>(0, sequence.num_found);
  stats.completion_tokens = sequence.num_generated();
  stats.queue_ms = milliseconds(times.submitted_ns, has_started ? times.first_step_ns : now_ns);
  stats.prefill_ms = milliseconds(times.first_step_ns, has_token ? times.first_token_ns : now_ns);
  stats.decode_ms = milliseconds(times.first_token_ns, times.last_token_ns);
  stats.sample_ms = static_cast<double>(times.sampling_ns) * 1e-6;
  stats.seed = sequence.chain.seed();
  stats.num_preemptions = sequence.num_preemptions;
  stats.model = model_name;
  return stats;
}

/// Of a completion that ends now; null where none was kept.
std::shared_ptr<const Timeline> timeline_of(const Sequence& sequence, int64_t now_ns) {
  if (sequence.timeline == nullptr) return nullptr;
  sequence.timeline->end(now_ns);
  return {sequence.timeline, &sequence.timeline->timeline()};
}

Error deadline_error(const Request& request) {
  return {ErrorCode::deadline_exceeded,
          "the time of " + std::to_string(request.timeout_ms) + " ms for this request has passed",
          "timeout_ms", ""};
}

}  // namespace

void Scheduler::cancel(Stream::Impl& stream, const std::bitset<kMaxChoices>& choices) {
  for (size_t i = 0; i < stream.choices.size();) {
    Sequence& sequence = *stream.choices[i];
    if (choices[static_cast<size_t>(sequence.choice)]) {
      finish(sequence, FinishReason::cancelled, -1);  // which takes it from the list
    } else {
      ++i;
    }
  }
  remove_ended();
}

void Scheduler::cancel_all() {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (!sequences_[i]->has_ended) finish(*sequences_[i], FinishReason::cancelled, -1);
  }
  batch_.clear();
  cache_.abandon_copies(batch_.copies);
  remove_ended();
}

void Scheduler::forget_prefixes() {
  cache_.forget_prefixes();
  for (Sequence* sequence : running_) sequence->cached.num_remembered = 0;
}

void Scheduler::abandon_all() noexcept {
  ++stats_.num_broken_invariants;
  for (const auto& sequence : sequences_) {
    for (BlockTable& table : sequence->cached.tables) table.abandon();
    if (sequence->has_ended) continue;
    Stream::Impl& stream = *sequence->stream;
    if (!stream.choices.empty()) ++stats_.num_errors;
    stream.choices.clear();
    stream.break_off(ErrorCode::internal);
    leave_room(*sequence);
    sequence->has_ended = true;
  }
  batch_.clear();
  batch_.copies.clear();
  planned_ = nullptr;
  running_.clear();
  waiting_.clear();
  sequences_.clear();
  cache_.reset();
  num_suspects_ = 0;
  num_paused_ = 0;
  batch_limit_ = options_.max_sequences;
  has_ended_ones_ = false;
  next_deadline_ns_ = kNever;
  wake_ns_ = 0;
}

void Scheduler::drop(Stream::Impl& stream) {
  break_off(stream);
  remove_ended();
}

void Scheduler::finish(Sequence& sequence, FinishReason reason, TokenId stop_token) {
  switch (reason) {
    case FinishReason::stop:
      ++stats_.num_stopped;
      break;
    case FinishReason::length:
      ++stats_.num_length;
      break;
    case FinishReason::cancelled:
      ++stats_.num_cancelled;
      break;
  }
  const int64_t now_ns = clock_.now_ns();
  try {
    end(sequence, FinishEvent{reason, stop_token, stats_of(sequence, now_ns, options_.model_name),
                              sequence.choice, timeline_of(sequence, now_ns)});
  } catch (const std::bad_alloc&) {
    break_off(*sequence.stream);
  }
}

void Scheduler::end(Sequence& sequence, Event event) {
  if (sequence.has_ended) return;
  const auto stream = sequence.stream;
  mark_ended(sequence);
  push_event(stream, std::move(event));
}

void Scheduler::end_request(Stream::Impl& stream, const Error& error) {
  if (stream.choices.empty()) return;
  const auto holder = stream.choices.front()->stream;
  ++stats_.num_errors;
  if (error.code == ErrorCode::deadline_exceeded) ++stats_.num_expired;
  if (error.code == ErrorCode::resource_exhausted) count(MemoryRung::fail_request);
  try {
    push_event(holder, ErrorEvent{error});
  } catch (const std::bad_alloc&) {
    stream.break_off();
  }
  while (!stream.choices.empty()) mark_ended(*stream.choices.back());
}

// Of a request that there is no memory to tell anything.
void Scheduler::break_off(Stream::Impl& stream) {
  stream.break_off();
  if (!stream.choices.empty()) {
    ++stats_.num_errors;
    count(MemoryRung::fail_request);
  }
  while (!stream.choices.empty()) mark_ended(*stream.choices.back());
}

void Scheduler::push_event(const std::shared_ptr<Stream::Impl>& stream, Event event) {
  try {
    events_.push_back({stream, std::move(event)});
  } catch (const std::bad_alloc&) {
    break_off(*stream);
  }
}

// Its blocks are free, and it is in no list but that of all.
void Scheduler::mark_ended(Sequence& sequence) {
  if (sequence.is_running) {
    let_go(sequence, true);
    std::erase(running_, &sequence);
    batch_limit_ = running_.empty() ? options_.max_sequences
                                    : std::min(batch_limit_ + 1, options_.max_sequences);
  } else {
    waiting_.remove(sequence);
  }
  if (std::exchange(sequence.is_suspect, false)) --num_suspects_;
  leave_room(sequence);
  release_followers(sequence);
  unfollow(sequence);
  sequence.has_ended = true;
  has_ended_ones_ = true;
  std::erase(sequence.stream->choices, &sequence);
}

// Off the blocks: it does not run any more.
void Scheduler::let_go(Sequence& sequence, bool keeps_prefix) {
  release_followers(sequence);
  if (keeps_prefix) {
    cache_.release(sequence.cached, sequence.tokens, sequence.num_computed);
  } else {
    cache_.discard(sequence.cached);
  }
  sequence.num_computed = 0;
  sequence.is_running = false;
  if (std::exchange(sequence.is_paused, false)) --num_paused_;
}

void Scheduler::leave_room(Sequence& sequence) noexcept {
  if (std::exchange(sequence.holds_place, false) && room_ != nullptr) {
    room_->leave(waiting_tokens(*sequence.request));
  }
}

void Scheduler::remove_ended() {
  if (!std::exchange(has_ended_ones_, false)) return;
  for (size_t i = 0; i < sequences_.size();) {
    if (!sequences_[i]->has_ended) {
      ++i;
      continue;
    }
    if (i + 1 < sequences_.size()) std::swap(sequences_[i], sequences_.back());
    sequences_.pop_back();
  }
}

void Scheduler::expire(int64_t now_ns) {
  if (now_ns < next_deadline_ns_) return;
  next_deadline_ns_ = kNever;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    Sequence& sequence = *sequences_[i];
    if (sequence.has_ended) continue;
    if (sequence.deadline_ns > now_ns) {
      next_deadline_ns_ = std::min(next_deadline_ns_, sequence.deadline_ns);
      continue;
    }
    const auto stream = sequence.stream;
    try {
      end_request(*stream, deadline_error(*sequence.request));
    } catch (const std::bad_alloc&) {
      break_off(*stream);
    }
  }
  remove_ended();
}

// It runs no more, nothing of what it computed last is known, and it begins again.
void Scheduler::restart(Sequence& sequence) {
  let_go(sequence, false);
  if (sequence.timeline) sequence.timeline->note_preemption();
  std::erase(running_, &sequence);
  waiting_.add(sequence, clock_.now_ns());
}

// Copies that were planned are not made: whoever was to get one has nothing.
void Scheduler::abandon_copies() {
  for (size_t i = 0; i < running_.size();) {
    Sequence& sequence = *running_[i];
    const auto is_its = [&](const BlockCopy& copy) {
      const auto blocks = sequence.cached.tables[static_cast<size_t>(copy.group)].blocks();
      return !blocks.empty() && blocks.back() == copy.to;
    };
    if (std::any_of(batch_.copies.begin(), batch_.copies.end(), is_its)) {
      restart(sequence);
    } else {
      ++i;
    }
  }
  cache_.abandon_copies(batch_.copies);
}

void Scheduler::give_up() {
  abandon_copies();
  planned_ = nullptr;
  batch_.clear();
}

void Scheduler::fail(const Error& error, bool may_repeat) {
  ++stats_.num_failed_steps;
  abandon_copies();
  const bool was_alone = batch_.sequences.size() == 1;
  // Whose rows were planned, and whoever was being planned when it happened.
  const auto fail_one = [&](Sequence& sequence) {
    if (sequence.has_ended) return;
    if (!may_repeat || (sequence.is_suspect && (was_alone || batch_.is_empty()))) {
      end_request(*sequence.stream, error);
      return;
    }
    if (sequence.is_running) restart(sequence);
    if (!std::exchange(sequence.is_suspect, true)) ++num_suspects_;
  };
  Sequence* const planned = std::exchange(planned_, nullptr);
  if (batch_.is_empty() && planned == nullptr) {
    // Nothing tells whose fault it was; to try again could go on forever.
    while (!sequences_.empty()) {
      for (auto& sequence : sequences_) {
        if (!sequence->has_ended) end_request(*sequence->stream, error);
      }
      remove_ended();
    }
  }
  for (const BatchSequence& part : batch_.sequences) fail_one(*part.sequence);
  if (planned != nullptr &&
      std::none_of(batch_.sequences.begin(), batch_.sequences.end(),
                   [&](const auto& part) { return part.sequence == planned; })) {
    fail_one(*planned);
  }
  batch_.clear();
  remove_ended();
}

// Caches of the process outside the pools are dropped once when blocks run short, and may grow
// again after that.
void Scheduler::note_pressure() {
  bool is_short = false;
  for (const CacheGroup& group : cache_.groups()) {
    const BlockPool& pool = group.pool();
    is_short |= pool.num_unreferenced() - group.num_cached() == 0 &&
                pool.num_unreferenced() < pool.num_blocks() / 8;
  }
  if (is_short && !is_short_ && options_.drop_caches) {
    count(MemoryRung::drop_caches);
    options_.drop_caches();
  }
  is_short_ = is_short;
}

void Scheduler::read_stats(EngineStats& stats) const {
  auto groups = std::move(stats.groups);
  stats = stats_;
  stats.groups = std::move(groups);
  stats.num_running = static_cast<int64_t>(running_.size());
  stats.num_paused = num_paused_;
  stats.num_waiting = static_cast<int64_t>(waiting_.size());
  stats.batch_limit = batch_limit_;
  stats.groups.resize(cache_.groups().size());
  int64_t num_evictions = 0;
  for (size_t i = 0; i < cache_.groups().size(); ++i) {
    const CacheGroup& group = cache_.groups()[i];
    const CacheGeometry& geometry = group.geometry();
    KvGroupStats& out = stats.groups[i];
    out.window = geometry.window;
    out.block_tokens = geometry.block_tokens;
    out.num_blocks = group.pool().num_blocks();
    out.num_held = group.pool().num_blocks() - group.pool().num_unreferenced();
    out.num_cached = group.num_cached();
    num_evictions += group.num_evictions();
    // Slots that nobody reads are at the end of a sequence's last block, and before its window.
    int64_t dead = 0;
    for (const Sequence* sequence : running_) {
      const BlockTable& table = sequence->cached.tables[i];
      const auto size = static_cast<int64_t>(table.blocks().size()) * geometry.block_tokens;
      dead += size - sequence->num_computed;
      if (geometry.window > 0) {
        const int64_t first = std::max<int64_t>(0, sequence->num_computed - geometry.window + 1);
        dead += first - table.num_released() * geometry.block_tokens;
      }
    }
    out.live_tokens = std::max<int64_t>(0, out.num_held * geometry.block_tokens - dead);
  }
  stats.rungs[static_cast<size_t>(MemoryRung::evict_prefixes)] = num_evictions;
}

// Every reference of a group's blocks has an owner. Needs no memory: it runs when there is none.
void Scheduler::check_owners(size_t group) const {
  std::fill(num_owners_.begin(), num_owners_.end(), 0);
  for (const Sequence* sequence : running_) {
    const BlockTable& table = sequence->cached.tables[group];
    table.check_invariants();
    for (const int32_t block : table.blocks()) {
      if (block != BlockTable::kReleasedBlock) ++num_owners_[static_cast<size_t>(block)];
    }
  }
  for (const BlockCopy& copy : batch_.copies) {
    if (copy.group == static_cast<int32_t>(group)) ++num_owners_[static_cast<size_t>(copy.from)];
  }
  const BlockPool& pool = cache_.groups()[group].pool();
  for (int32_t block = 0; block < pool.num_blocks(); ++block) {
    HEADRACE_CHECK_EQ(pool.references(block), num_owners_[static_cast<size_t>(block)]);
  }
}

void Scheduler::check_invariants() const {
  cache_.check_invariants();
  waiting_.check_invariants();
  HEADRACE_CHECK_EQ(waiting_.size() + running_.size(), sequences_.size());
  for (size_t i = 0; i < cache_.groups().size(); ++i) check_owners(i);
  int64_t num_suspects = 0;
  for (const auto& sequence : sequences_) num_suspects += sequence->is_suspect ? 1 : 0;
  HEADRACE_CHECK_EQ(num_suspects, num_suspects_);
  HEADRACE_CHECK_LE(static_cast<int64_t>(running_.size()), options_.max_sequences);
  for (const Sequence* sequence : running_) {
    HEADRACE_CHECK(sequence->is_running && !sequence->has_ended);
    HEADRACE_CHECK_LT(sequence->num_computed, sequence->num_tokens());
    HEADRACE_CHECK_LE(sequence->num_tokens(), sequence->max_tokens);
  }
}

}  // namespace headrace
