// See scheduler.h. Here: who begins, and when.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "engine/scheduler/scheduler.h"

namespace headrace {
namespace {

/// So many of those first in turn are compared: the one with the longest prefix in the cache goes
/// first.
constexpr size_t kNumCompared = 8;
/// So many are looked at in search of them: others wait for a prefix that is being computed.
constexpr size_t kMostLookedAt = 32;
/// So often others may be preferred to one whose turn it is.
constexpr int32_t kMaxPassed = 16;

/// Its tokens that need not be computed where they are cached: all but the last, whose logits are
/// wanted.
int64_t reusable_tokens(const Sequence& sequence) {
  if (sequence.wants_scores() && sequence.num_scored < sequence.num_prompt_tokens()) return 0;
  // Of a mean, and of the first token's vector, all rows are wanted.
  if (sequence.is_pooled(0) && sequence.num_tokens() > 1) return 0;
  return sequence.num_tokens() - 1;
}

}  // namespace

void Scheduler::admit_waiting() {
  // One whose step failed is the next to begin, when there is room for it.
  const auto is_next = [&](const Sequence* sequence) {
    return sequence->is_suspect && !is_behind(*sequence);
  };
  if (num_suspects_ > 0 && std::any_of(waiting_.begin(), waiting_.end(), is_next)) {
    count(MemoryRung::stop_admitting);
    return;
  }
  while (prompt_rows_left_ > 0 && static_cast<int64_t>(running_.size()) < batch_limit_) {
    if (waits_for_company()) return;
    Sequence* next = is_full() ? nullptr : choose_next();
    if (next == nullptr) return;
    planned_ = next;
    if (options_.is_unchunked && next->num_tokens() > prompt_rows_left_) return;
    if (!has_room(*next)) {
      count(MemoryRung::stop_admitting);
      return;
    }
    admit(*next);
    if (next->num_followers > 0 && next->num_computed >= next->target()) {
      fork_followers(*next);  // all of the prompt was cached: they begin in this step
      for (Sequence* choice : next->stream->choices) {
        if (choice != next && choice->is_running && prompt_rows_left_ > 0) plan_prompt(*choice);
      }
    }
    if (prompt_rows_left_ > 0) plan_prompt(*next);
  }
}

// Whether nobody could begin, whoever it is: what is free is needed by those that run.
bool Scheduler::is_full() {
  if (running_.empty() || waiting_.is_empty()) return false;
  for (size_t i = 0; i < cache_.groups().size(); ++i) {
    int64_t num_growing = 0;
    for (const Sequence* sequence : running_) num_growing += may_grow(*sequence, i) ? 1 : 0;
    if (cache_.groups()[i].pool().num_unreferenced() >= num_growing) continue;
    count(MemoryRung::stop_admitting);
    return true;
  }
  return false;
}

// Whether it will want more blocks of a group than it holds.
bool Scheduler::may_grow(const Sequence& sequence, size_t group) const {
  return sequence.cached.tables[group].num_held() <
         max_blocks_held(cache_.groups()[group].geometry(), sequence.max_tokens,
                         options_.max_step_rows);
}

// While there are places for all that wait, they may wait for more to come.
bool Scheduler::waits_for_company() {
  if (options_.max_wait_ns == 0 || waiting_.is_empty()) return false;
  const auto num_free = static_cast<size_t>(options_.max_sequences) - running_.size();
  if (waiting_.size() >= num_free) return false;
  int64_t oldest_ns = kNever;
  for (const Sequence* sequence : waiting_) {
    oldest_ns = std::min(oldest_ns, sequence->times.submitted_ns);
  }
  const int64_t until_ns = oldest_ns + options_.max_wait_ns;
  if (until_ns <= planned_ns_) return false;
  wake_ns_ = until_ns;
  return true;
}

bool Scheduler::is_behind(const Sequence& sequence) {
  if (!sequence.stream->is_full()) return false;
  waits_for_reader_ = true;
  return true;
}

bool Scheduler::may_begin(const Sequence& sequence) {
  return sequence.leader == nullptr && !sequence.is_suspect && !is_behind(sequence);
}

// Where all that run pause, one of them makes room for others that wait, if there are any whose
// readers are not behind; it goes on when its own has caught up and it is its turn again.
bool Scheduler::yield_paused() {
  if (num_paused_ == 0 || wake_ns_ > 0) return false;
  if (std::all_of(waiting_.begin(), waiting_.end(),
                  [&](const Sequence* sequence) { return is_behind(*sequence); })) {
    return false;
  }
  Sequence& sequence = *last_to_run();
  note_preemption(sequence);
  let_go(sequence, true);
  std::erase(running_, &sequence);
  waiting_.add(sequence, clock_.now_ns());
  return true;
}

// The first in turn, or one of those behind it with more of its prompt in the cache. Who waits for
// company gets one of like length, if there is any: what the prompts of a step have in common is
// work that its threads share evenly.
Sequence* Scheduler::choose_next() {
  Sequence* first = nullptr;
  Sequence* best = nullptr;
  std::pair<int64_t, int64_t> best_rank;
  size_t num_compared = 0;
  size_t num_looked_at = 0;
  for (Sequence* sequence : waiting_) {
    if (!may_begin(*sequence)) continue;
    if (num_looked_at++ == kMostLookedAt) break;
    if (first != nullptr && sequence->key.priority != first->key.priority) break;
    planned_ = sequence;
    const int64_t found =
        cache_.find_prefix(sequence->cached, sequence->all_tokens(), reusable_tokens(*sequence));
    if (waits_for_prefix(*sequence, found)) continue;
    if (first == nullptr) first = sequence;
    const std::pair rank(found, -length_beside(*sequence));
    if (best == nullptr || rank > best_rank) {
      best = sequence;
      best_rank = rank;
    }
    if (first->num_passed >= kMaxPassed || ++num_compared == kNumCompared) break;
  }
  if (first != nullptr && first->num_passed >= kMaxPassed) return first;
  if (best != first) ++first->num_passed;
  return best;
}

// By how many tokens it is longer or shorter than the one that was admitted before it in this step;
// 0 where that does not matter.
int64_t Scheduler::length_beside(const Sequence& sequence) const {
  if (options_.max_wait_ns == 0 || last_admitted_tokens_ == 0) return 0;
  return std::abs(sequence.num_tokens() - last_admitted_tokens_);
}

// Whether one that runs is about to compute the next block of its prompt.
bool Scheduler::waits_for_prefix(Sequence& sequence, int64_t num_found) const {
  const int64_t end = num_found + cache_.block_tokens();
  if (end > reusable_tokens(sequence)) return false;
  const auto index = static_cast<size_t>(num_found / cache_.block_tokens());
  return std::any_of(running_.begin(), running_.end(), [&](const Sequence* other) {
    return other->num_computed < end && end <= other->num_tokens() && !other->is_suspect &&
           !other->is_paused && KvCache::same_block(other->cached, sequence.cached, index);
  });
}

// Whether there are blocks for all its tokens, besides those that others need soon: for prompts
// that are under way, and one for each that generates.
bool Scheduler::has_room(Sequence& sequence) {
  const auto& groups = cache_.groups();
  const int64_t found =
      cache_.find_prefix(sequence.cached, sequence.all_tokens(), reusable_tokens(sequence));
  for (size_t i = 0; i < groups.size(); ++i) {
    const CacheGeometry& geometry = groups[i].geometry();
    const auto blocks_needed = [&](const Sequence& of) {
      return max_blocks_held(geometry, std::min(of.num_tokens() + 1, of.max_tokens),
                             options_.max_step_rows);
    };
    int64_t needed = blocks_needed(sequence);
    if (found > 0) needed -= cache_.num_shared(sequence.cached, sequence.all_tokens(), i, found);
    for (const Sequence* other : running_) {
      const int64_t soon = blocks_needed(*other) - other->cached.tables[i].num_held();
      needed += std::max<int64_t>(may_grow(*other, i) ? 1 : 0, soon);
    }
    if (needed > groups[i].pool().num_unreferenced()) return running_.empty();
  }
  return true;
}

void Scheduler::admit(Sequence& sequence) {
  const int64_t reusable = std::min(reusable_tokens(sequence), sequence.target());
  if (sequence.tokens.empty()) sequence.tokens = sequence.request->prompt;
  cache_.hash_blocks(sequence.cached, sequence.tokens, sequence.num_prompt_tokens());
  const int64_t found =
      cache_.attach(sequence.cached, sequence.tokens, reusable, sequence.max_tokens, batch_.copies);
  if (sequence.num_found < 0) {
    stats_.prefix_query_tokens += sequence.num_prompt_tokens();
    stats_.prefix_hit_tokens += found;
  }
  last_admitted_tokens_ = sequence.num_tokens();
  start_running(sequence, found);
  waiting_.note_admission(sequence, planned_ns_);
}

// Out of the queue, with what is in its tables already.
void Scheduler::start_running(Sequence& sequence, int64_t num_computed) {
  waiting_.remove(sequence);
  leave_room(sequence);
  sequence.num_computed = num_computed;
  sequence.admission = num_admissions_++;
  sequence.is_running = true;
  if (sequence.times.first_step_ns < 0) sequence.times.first_step_ns = clock_.now_ns();
  if (sequence.num_found < 0) {
    sequence.num_found = std::min(num_computed, sequence.num_prompt_tokens());
    if (sequence.choice == 0) stats_.prompt_tokens += sequence.num_prompt_tokens();
  }
  const auto at = std::upper_bound(running_.begin(), running_.end(), &sequence,
                                   [](const Sequence* a, const Sequence* b) {
                                     return std::pair(a->request->priority, a->admission) <
                                            std::pair(b->request->priority, b->admission);
                                   });
  running_.insert(at, &sequence);
}

// The leader has computed the prompt but for its last token: the other choices go on from there,
// each with the last token as its own first row.
void Scheduler::fork_followers(Sequence& leader) {
  for (Sequence* follower : leader.stream->choices) {
    if (follower->leader != &leader) continue;
    if (static_cast<int64_t>(running_.size()) >= batch_limit_) break;
    planned_ = follower;
    if (follower->tokens.empty()) follower->tokens = follower->request->prompt;
    if (!cache_.fork(leader.cached, follower->cached, leader.num_computed, follower->max_tokens,
                     batch_.copies)) {
      break;
    }
    unfollow(*follower);
    start_running(*follower, leader.num_computed);
  }
  release_followers(leader);
}

// Those for whom there was no place begin like any other, with what the cache has of the prompt.
void Scheduler::release_followers(Sequence& leader) {
  if (leader.num_followers == 0) return;
  for (Sequence* follower : leader.stream->choices) {
    if (follower->leader == &leader) unfollow(*follower);
  }
}

void Scheduler::unfollow(Sequence& follower) {
  if (Sequence* leader = std::exchange(follower.leader, nullptr)) --leader->num_followers;
}

// One whose step failed gets a step of its own: it runs already, or can begin now.
Sequence* Scheduler::suspect_to_plan() {
  if (num_suspects_ == 0) return nullptr;
  for (Sequence* sequence : running_) {
    if (sequence->is_suspect && !sequence->is_paused) return sequence;
  }
  if (running_.size() == running_.capacity()) return nullptr;
  for (Sequence* sequence : waiting_) {
    if (!sequence->is_suspect || is_behind(*sequence)) continue;
    planned_ = sequence;
    if (!has_room(*sequence)) return nullptr;
    unfollow(*sequence);
    admit(*sequence);
    return sequence;
  }
  return nullptr;
}

}  // namespace headrace
