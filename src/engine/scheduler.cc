// See scheduler.h.
#include "engine/scheduler.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "base/check.h"

namespace headrace {
namespace {

double milliseconds(int64_t from_ns, int64_t to_ns) {
  return from_ns < 0 || to_ns < from_ns ? 0 : static_cast<double>(to_ns - from_ns) * 1e-6;
}

RequestStats stats_of(const Sequence& sequence, int64_t now_ns) {
  const SequenceTimes& times = sequence.times;
  const bool has_started = times.first_step_ns >= 0;
  const bool has_token = times.first_token_ns >= 0;
  RequestStats stats;
  stats.prompt_tokens = sequence.num_prompt_tokens();
  stats.completion_tokens = sequence.num_generated();
  stats.queue_ms = milliseconds(times.submitted_ns, has_started ? times.first_step_ns : now_ns);
  stats.prefill_ms = milliseconds(times.first_step_ns, has_token ? times.first_token_ns : now_ns);
  stats.decode_ms = milliseconds(times.first_token_ns, times.last_token_ns);
  stats.sample_ms = static_cast<double>(times.sampling_ns) * 1e-6;
  stats.seed = sequence.chain.seed();
  return stats;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, std::span<const CacheGeometry> geometries,
                     std::span<const int64_t> num_blocks, const Clock& clock)
    : options_(options), clock_(clock) {
  HEADRACE_CHECK_EQ(geometries.size(), num_blocks.size());
  HEADRACE_CHECK_LE(options.max_sequences, options.max_step_rows);
  for (size_t i = 0; i < geometries.size(); ++i) {
    groups_.emplace_back(geometries[i], static_cast<int32_t>(num_blocks[i]));
  }
  batch_.caches.resize(groups_.size());
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  waiting_.push_back(std::move(sequence));
  Sequence& added = *waiting_.back();
  if (added.request.stop.max_tokens == 0) {
    finish(added, FinishReason::length, -1);
    waiting_.pop_back();
  }
}

void Scheduler::cancel(uint64_t sequence_id) {
  const auto has_id = [&](const auto& sequence) { return sequence->id == sequence_id; };
  if (const auto it = std::find_if(waiting_.begin(), waiting_.end(), has_id);
      it != waiting_.end()) {
    finish(**it, FinishReason::cancelled, -1);
    waiting_.erase(it);
  } else if (const auto at = std::find_if(running_.begin(), running_.end(), has_id);
             at != running_.end()) {
    finish(**at, FinishReason::cancelled, -1);
    running_.erase(at);
  }
}

void Scheduler::cancel_all() {
  for (auto& sequence : running_) finish(*sequence, FinishReason::cancelled, -1);
  for (auto& sequence : waiting_) finish(*sequence, FinishReason::cancelled, -1);
  batch_.clear();
  running_.clear();
  waiting_.clear();
}

void Scheduler::remove_broken_off() {
  const auto has_broken_off = [](const auto& sequence) {
    return sequence->stream->has_broken_off();
  };
  std::erase_if(running_, has_broken_off);
  std::erase_if(waiting_, has_broken_off);
}

Batch& Scheduler::plan_step() {
  batch_.clear();
  // A sequence that generates must not wait for another one's prompt.
  for (const bool decodes : {true, false}) {
    for (auto& sequence : running_) {
      const bool needs_one = sequence->num_tokens() - sequence->num_computed == 1;
      if (needs_one == decodes) plan_rows(*sequence);
    }
  }
  admit_waiting();
  return batch_;
}

bool Scheduler::can_admit(const Sequence& sequence) const {
  return static_cast<int64_t>(running_.size()) < options_.max_sequences &&
         static_cast<int64_t>(batch_.tokens.size()) < options_.max_step_rows &&
         std::all_of(groups_.begin(), groups_.end(), [&](const CacheGroup& group) {
           return group.can_reserve(
               max_blocks_held(group.geometry(), sequence.max_tokens, options_.max_step_rows));
         });
}

void Scheduler::admit_waiting() {
  while (!waiting_.empty() && can_admit(*waiting_.front())) {
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    Sequence& sequence = *running_.back();
    sequence.times.first_step_ns = clock_.now_ns();
    plan_rows(sequence);
  }
}

void Scheduler::plan_rows(Sequence& sequence) {
  const auto first_row = static_cast<int64_t>(batch_.tokens.size());
  const int64_t rows =
      std::min(sequence.num_tokens() - sequence.num_computed, options_.max_step_rows - first_row);
  if (rows == 0) return;
  const int64_t first = sequence.num_computed;
  const int64_t end = first + rows;
  // Named in the batch before anything can throw, so that fail() finds it.
  batch_.sequences.push_back({&sequence, first_row, rows, first, -1});
  if (sequence.tables.empty()) {
    for (CacheGroup& group : groups_) {
      sequence.tables.emplace_back(group, sequence.max_tokens, options_.max_step_rows);
    }
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    sequence.tables[i].grow(end);
    batch_.caches[i].push_back({first_row, rows, first, sequence.tables[i].blocks()});
  }
  for (int64_t position = first; position < end; ++position) {
    batch_.tokens.push_back(sequence.tokens[static_cast<size_t>(position)]);
    batch_.positions.push_back(static_cast<int32_t>(position));
  }
  if (end == sequence.num_tokens()) {
    batch_.sequences.back().sample = static_cast<int32_t>(batch_.samples.size());
    batch_.logit_rows.push_back(static_cast<int32_t>(first_row + rows - 1));
    batch_.samples.push_back({.sequence = &sequence});
  }
}

void Scheduler::commit() {
  const int64_t now_ns = clock_.now_ns();
  events_.reserve(events_.size() + 2 * batch_.samples.size());  // what can throw comes first
  for (const BatchSequence& part : batch_.sequences) {
    Sequence& sequence = *part.sequence;
    sequence.num_computed += part.num_rows;
    for (BlockTable& table : sequence.tables) table.reclaim(sequence.num_computed);
    if (part.sample < 0) continue;
    commit_token(sequence, batch_.samples[static_cast<size_t>(part.sample)], now_ns);
  }
  batch_.clear();
  remove_ended();
}

void Scheduler::commit_token(Sequence& sequence, BatchSample& sample, int64_t now_ns) {
  sequence.times.sampling_ns += sample.sampling_ns;
  if (sample.error) {
    end(sequence, ErrorEvent{*sample.error});
    return;
  }
  const TokenId id = sample.token.id;
  if (sequence.times.first_token_ns < 0) sequence.times.first_token_ns = now_ns;
  sequence.times.last_token_ns = now_ns;
  if (std::find(sequence.end_tokens.begin(), sequence.end_tokens.end(), id) !=
      sequence.end_tokens.end()) {
    finish(sequence, FinishReason::stop, id);
    return;
  }
  sequence.tokens.push_back(id);
  events_.push_back(
      {sequence.stream, TokenEvent{id, sample.token.logprob, std::move(sample.token.top)}});
  if (sequence.num_tokens() >= sequence.max_tokens) finish(sequence, FinishReason::length, -1);
}

void Scheduler::finish(Sequence& sequence, FinishReason reason, TokenId stop_token) {
  end(sequence, FinishEvent{reason, stop_token, stats_of(sequence, clock_.now_ns())});
}

void Scheduler::end(Sequence& sequence, Event event) {
  if (sequence.has_ended) return;
  sequence.tables.clear();
  sequence.has_ended = true;
  try {
    events_.push_back({sequence.stream, std::move(event)});
  } catch (const std::bad_alloc&) {
    sequence.stream->break_off();
  }
}

void Scheduler::remove_ended() {
  std::erase_if(running_, [](const auto& sequence) { return sequence->has_ended; });
}

void Scheduler::fail(const Error& error) {
  if (batch_.sequences.empty()) {
    // Nothing tells whose fault it was; to try again could go on forever.
    for (auto& sequence : running_) end(*sequence, ErrorEvent{error});
    for (auto& sequence : waiting_) end(*sequence, ErrorEvent{error});
    waiting_.clear();
  }
  for (const BatchSequence& part : batch_.sequences) end(*part.sequence, ErrorEvent{error});
  batch_.clear();
  remove_ended();
}

void Scheduler::check_invariants() const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].check_invariants();
    std::map<int32_t, int32_t> owners;
    for (const auto& sequence : running_) {
      if (sequence->tables.empty()) continue;
      sequence->tables[i].check_invariants();
      for (const int32_t block : sequence->tables[i].blocks()) {
        if (block != BlockTable::kReleasedBlock) ++owners[block];
      }
    }
    const BlockPool& pool = groups_[i].pool();
    for (const auto& [block, count] : owners) HEADRACE_CHECK_EQ(pool.references(block), count);
    HEADRACE_CHECK_EQ(static_cast<int32_t>(owners.size()),
                      pool.num_blocks() - pool.num_unreferenced());
  }
  for (const auto& sequence : running_) {
    HEADRACE_CHECK_LT(sequence->num_computed, sequence->num_tokens());
    HEADRACE_CHECK_LT(sequence->num_tokens(), sequence->max_tokens);
  }
}

}  // namespace headrace
