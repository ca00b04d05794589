// See scheduler.h. Here: planning and committing a step.
#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace headrace {

Scheduler::Scheduler(const SchedulerOptions& options, std::span<const CacheGeometry> geometries,
                     std::span<const int64_t> num_blocks, const Clock& clock, WaitingRoom* room)
    : options_(options),
      clock_(clock),
      room_(room),
      cache_(geometries, num_blocks, options.cache),
      waiting_(options.aging_ns),
      batch_limit_(options.max_sequences),
      pacer_(options.max_slowdown),
      decode_meter_(geometries, options.block_bytes) {
  HEADRACE_CHECK_LE(options.max_sequences, options.max_step_rows);
  HEADRACE_CHECK_LE(options.max_sequences, options.max_logit_rows);
  running_.reserve(static_cast<size_t>(options.max_sequences));
  batch_.caches.resize(geometries.size());
  if (!num_blocks.empty()) {
    num_owners_.resize(
        static_cast<size_t>(*std::max_element(num_blocks.begin(), num_blocks.end())));
  }
}

Scheduler::~Scheduler() {
  for (auto& sequence : sequences_) {  // the pools go too: nothing need be given back
    for (BlockTable& table : sequence->cached.tables) table.abandon();
  }
}

void Scheduler::add(std::vector<std::unique_ptr<Sequence>> choices) {
  Sequence& first = *choices.front();
  Stream::Impl& stream = *first.stream;
  try {
    sequences_.reserve(sequences_.size() + choices.size());
    waiting_.reserve(sequences_.size() + choices.size());
    for (auto& choice : choices) stream.choices.push_back(choice.get());
    waiting_.set_tag(stream.choices);
  } catch (...) {
    stream.choices.clear();
    leave_room(first);
    throw;
  }
  const int64_t now_ns = clock_.now_ns();
  for (auto& choice : choices) {
    Sequence& sequence = *choice;
    sequences_.push_back(std::move(choice));
    next_deadline_ns_ = std::min(next_deadline_ns_, sequence.deadline_ns);
    waiting_.add(sequence, now_ns);
    if (&sequence == &first) continue;
    sequence.leader = &first;
    ++first.num_followers;
  }
  wake_ns_ = 0;
  if (!first.generates() || first.request->stop.max_tokens != 0 || first.wants_scores()) return;
  while (!stream.choices.empty()) finish(*stream.choices.front(), FinishReason::length, -1);
  remove_ended();
}

Batch& Scheduler::plan_step() {
  planned_ns_ = clock_.now_ns();
  last_admitted_tokens_ = 0;
  batch_.clear();
  wake_ns_ = 0;
  expire(planned_ns_);
  waiting_.age(planned_ns_);
  note_paused();
  if (Sequence* suspect = suspect_to_plan(); suspect != nullptr) {
    num_generating_ = num_prompt_rows_ = 0;
    plan_alone(*suspect);
    return batch_;
  }
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& leader = *running_[i];
    if (leader.is_paused || leader.num_followers == 0) continue;
    if (leader.num_computed >= leader.target()) fork_followers(leader);
  }
  for (;;) {
    num_generating_ = num_prompt_rows_ = 0;
    plan_generating();
    plan_prompts();
    // Where all wait for blocks that others of them hold, one must give its own up.
    const auto num_running = static_cast<int64_t>(running_.size());
    if (!batch_.is_empty() || num_running < 2 || num_running == num_paused_) break;
    preempt(*last_to_run());
  }
  raise_batch_limit();
  admit_waiting();
  bool has_yielded = false;
  while (batch_.is_empty() && yield_paused()) {
    has_yielded = true;
    admit_waiting();
  }
  planned_ = nullptr;
  note_pressure();
  if (batch_.is_empty()) {
    // Who waits does it for company, or for a reader.
    HEADRACE_CHECK(waiting_.is_empty() || wake_ns_ > 0 || waits_for_reader_ || has_yielded);
    HEADRACE_CHECK_EQ(static_cast<int64_t>(running_.size()), num_paused_);
    // There is room now for one whose step failed, which is planned first.
    if (has_yielded) {
      wake_ns_ = 0;
      return batch_;
    }
    wake_ns_ = std::min(wake_ns_ == 0 ? kNever : wake_ns_, next_deadline_ns_);
  } else {
    wake_ns_ = 0;  // who waits for company waits while others go on
  }
  return batch_;
}

// Once a step, so that all of it sees the same: a reader may catch up at any time.
void Scheduler::note_paused() {
  num_paused_ = 0;
  waits_for_reader_ = false;
  for (Sequence* sequence : running_) {
    const bool was_paused = std::exchange(sequence->is_paused, sequence->stream->is_full());
    if (!sequence->is_paused) continue;
    ++num_paused_;
    if (was_paused) continue;
    ++stats_.num_pauses;
    if (sequence->timeline) sequence->timeline->note_pause();
  }
}

int64_t Scheduler::rows_of(const Sequence& sequence) const {
  if (sequence.is_paused) return 0;
  return sequence.target() - sequence.num_computed;
}

// A sequence that generates must not wait for another one's prompt.
void Scheduler::plan_generating() {
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (rows_of(sequence) != 1 || sequence.is_suspect) continue;
    planned_ = &sequence;
    if (!make_room(sequence, sequence.num_computed + 1)) continue;
    while (running_[i] != &sequence) --i;  // one before it, that pauses, made room
    add_rows(sequence, 1);
    ++num_generating_;
  }
}

void Scheduler::plan_prompts() {
  prompt_rows_left_ =
      pacer_.prompt_rows(num_generating_, options_.max_step_rows - batch_.num_rows());
  for (size_t i = 0; i < running_.size() && prompt_rows_left_ > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (rows_of(sequence) > 1 && !sequence.is_suspect) plan_prompt(sequence);
  }
}

// The most rows of a prompt for which there are places for logits, where `rows` are wanted.
int64_t Scheduler::rows_with_logits(const Sequence& sequence, int64_t rows) const {
  const int64_t places = options_.max_logit_rows - static_cast<int64_t>(batch_.samples.size());
  if (!sequence.generates()) return rows;
  if (!sequence.wants_scores()) {
    // Its last row is computed first of all in the next step.
    const bool reaches_end = sequence.num_computed + rows == sequence.num_tokens();
    return reaches_end && places == 0 ? rows - 1 : rows;
  }
  // Row p scores token p + 1, unless an earlier attempt did.
  const int64_t unscored = std::max<int64_t>(0, sequence.num_scored - 1 - sequence.num_computed);
  return std::min(rows, unscored + places);
}

// Rows of a prompt, as many as the step has left, and for which there are blocks and places for
// logits. Returns how many.
int64_t Scheduler::plan_prompt(Sequence& sequence) {
  planned_ = &sequence;
  const int64_t first = sequence.num_computed;
  int64_t rows = rows_with_logits(sequence, std::min(prompt_rows_left_, rows_of(sequence)));
  const int64_t possible = cache_.largest_growth(sequence.cached) - first;
  if (possible < rows) count(MemoryRung::shrink_chunks);
  rows = std::min(rows, possible);
  if (options_.is_unchunked && rows < rows_of(sequence)) return 0;
  if (rows <= 0) return 0;
  const bool grown = cache_.grow(sequence.cached, first + rows);
  HEADRACE_CHECK(grown);
  add_rows(sequence, rows);
  num_prompt_rows_ += rows;
  prompt_rows_left_ -= rows;
  return rows;
}

// A step for one sequence that failed in company, so that it can only hurt itself.
void Scheduler::plan_alone(Sequence& sequence) {
  if (sequence.num_followers > 0) release_followers(sequence);
  prompt_rows_left_ = options_.max_step_rows;
  while (plan_prompt(sequence) == 0) {
    Sequence* victim = victim_of(sequence);
    HEADRACE_CHECK(victim != nullptr);
    preempt(*victim);
  }
  planned_ = nullptr;
}

// Who gives way first: the last of those that pause, else the last of those that run.
Sequence* Scheduler::last_to_run() const {
  const auto paused = std::find_if(running_.rbegin(), running_.rend(),
                                   [](const Sequence* sequence) { return sequence->is_paused; });
  return paused != running_.rend() ? *paused : running_.back();
}

// Whom to take blocks from for `sequence`, which does not pause.
Sequence* Scheduler::victim_of(const Sequence& sequence) const {
  if (num_paused_ > 0) return last_to_run();
  if (running_.back() != &sequence) return running_.back();
  if (!sequence.is_suspect || running_.size() < 2) return nullptr;
  return running_[running_.size() - 2];
}

// Blocks for its first `num_tokens` tokens, taken from others behind it if need be; where it is the
// last, it gives its own up. False if it has none now.
bool Scheduler::make_room(Sequence& sequence, int64_t num_tokens) {
  while (!cache_.grow(sequence.cached, num_tokens)) {
    note_pressure();  // before anybody loses blocks
    Sequence* victim = victim_of(sequence);
    if (victim == nullptr) {
      HEADRACE_CHECK_GT(running_.size(), 1U);  // alone, it fits: checked when it came
      preempt(sequence);
      return false;
    }
    preempt(*victim);
  }
  return true;
}

// Its blocks are free, and it waits to begin again.
void Scheduler::preempt(Sequence& sequence) {
  HEADRACE_CHECK(sequence.is_running);
  num_calm_steps_ = 0;
  const int64_t limit = std::max<int64_t>(1, static_cast<int64_t>(running_.size()) - 1);
  if (limit < batch_limit_) {
    batch_limit_ = limit;
    count(MemoryRung::lower_batch);
  }
  note_preemption(sequence);
  count(MemoryRung::preempt);
  let_go(sequence, true);
  std::erase(running_, &sequence);
  waiting_.add(sequence, clock_.now_ns());
}

// After a preemption fewer run; one more may when there was none for a while. Whether there are
// blocks for it is looked at where it is admitted.
void Scheduler::raise_batch_limit() {
  constexpr int64_t kCalmSteps = 16;
  if (++num_calm_steps_ < kCalmSteps) return;
  num_calm_steps_ = 0;
  batch_limit_ = std::min(batch_limit_ + 1, options_.max_sequences);
}

void Scheduler::add_rows(Sequence& sequence, int64_t num_rows) {
  const auto first_row = batch_.num_rows();
  const int64_t first = sequence.num_computed;
  const int64_t end = first + num_rows;
  batch_.sequences.push_back(
      {.sequence = &sequence,
       .first_row = first_row,
       .num_rows = num_rows,
       .first_position = first,
       .first_score = static_cast<int32_t>(batch_.samples.size()),
       .first_embedded = static_cast<int32_t>(batch_.embedding_rows.size())});
  BatchSequence& part = batch_.sequences.back();
  for (size_t i = 0; i < batch_.caches.size(); ++i) {
    batch_.caches[i].push_back({first_row, num_rows, first, sequence.cached.tables[i].blocks()});
  }
  for (int64_t position = first; position < end; ++position) {
    const auto row = static_cast<int32_t>(batch_.num_rows());
    batch_.tokens.push_back(sequence.tokens[static_cast<size_t>(position)]);
    batch_.positions.push_back(static_cast<int32_t>(position));
    const int64_t second = sequence.request->second_text;
    batch_.token_types.push_back(second >= 0 && position >= second ? 1 : 0);
    if (sequence.is_pooled(position)) {
      batch_.embedding_rows.push_back(row);
      ++part.num_embedded;
    }
    const int64_t scored = position + 1;
    if (sequence.wants_scores() && scored >= sequence.num_scored &&
        scored < sequence.num_prompt_tokens()) {
      batch_.logit_rows.push_back(row);
      batch_.samples.push_back({.sequence = &sequence, .scored_position = scored});
      ++part.num_scores;
    }
  }
  if (end < sequence.num_tokens()) return;
  if (!sequence.generates()) {
    part.embedding = static_cast<int32_t>(batch_.embeddings.size());
    batch_.embeddings.push_back({.sequence = &sequence});
  } else {
    part.sample = static_cast<int32_t>(batch_.samples.size());
    batch_.logit_rows.push_back(static_cast<int32_t>(batch_.num_rows() - 1));
    batch_.samples.push_back({.sequence = &sequence});
  }
}

// Memory for all that commit() keeps, so that it is done in whole or not at all.
void Scheduler::reserve_commit() {
  events_.reserve(events_.size() + 2 * (batch_.samples.size() + batch_.embeddings.size()));
  for (const BatchSequence& part : batch_.sequences) {
    Sequence& sequence = *part.sequence;
    const int64_t computed = sequence.num_computed + part.num_rows;
    cache_.hash_blocks(sequence.cached, sequence.tokens, computed);
    auto& tokens = sequence.tokens;
    if (part.sample >= 0 && tokens.size() == tokens.capacity()) tokens.reserve(2 * tokens.size());
  }
}

void Scheduler::commit() {
  reserve_commit();
  for (const BatchSequence& part : batch_.sequences) {
    if (part.num_scores > 0) commit_scores(part);
  }
  const int64_t now_ns = clock_.now_ns();
  cache_.end_copies(batch_.copies);
  for (const BatchSequence& part : batch_.sequences) {
    Sequence& sequence = *part.sequence;
    if (sequence.has_ended) continue;  // with another choice of its request
    sequence.num_computed += part.num_rows;
    cache_.advance(sequence.cached, sequence.tokens, sequence.num_computed);
    if (sequence.timeline) record_step(part, now_ns);
    if (part.embedding >= 0) {
      commit_embedding(sequence, batch_.embeddings[static_cast<size_t>(part.embedding)], now_ns);
    }
    if (part.sample < 0) continue;
    commit_token(sequence, batch_.samples[static_cast<size_t>(part.sample)], now_ns);
  }
  ++stats_.num_steps;
  stats_.step_rows += batch_.num_rows();
  stats_.prompt_rows += num_prompt_rows_;
  stats_.step_rows_histogram.add(static_cast<double>(batch_.num_rows()));
  stats_.step_seconds.add(static_cast<double>(now_ns - planned_ns_) * 1e-9);
  last_sampling_ns_ = batch_.sampling_ns;
  decode_meter_.note(batch_, planned_ns_, now_ns);
  stats_.decode = decode_meter_.total();
  pacer_.observe(num_generating_, num_prompt_rows_, now_ns - planned_ns_);
  batch_.clear();
  remove_ended();
}

void Scheduler::record_step(const BatchSequence& part, int64_t now_ns) noexcept {
  const Sequence& sequence = *part.sequence;
  TimelineRecorder::Step step;
  step.start_ns = planned_ns_;
  step.end_ns = now_ns;
  step.rows = part.num_rows;
  step.step_rows = batch_.num_rows();
  step.step_sequences = static_cast<int64_t>(batch_.sequences.size());
  if (part.sample >= 0) {
    const BatchSample& sample = batch_.samples[static_cast<size_t>(part.sample)];
    step.sampling_ns = sample.sampling_ns;
    step.gave_token = !sample.error && sequence.num_tokens() < sequence.max_tokens;
  }
  sequence.timeline->add(step);
}

// An event with what was looked up of the prompt. Only this may throw: what was not told is looked
// up again.
void Scheduler::commit_scores(const BatchSequence& part) {
  Sequence& sequence = *part.sequence;
  PromptLogprobsEvent event;
  const auto first = batch_.samples.begin() + part.first_score;
  event.first_position = first->scored_position;
  event.tokens.reserve(static_cast<size_t>(part.num_scores));
  for (auto sample = first; sample != first + part.num_scores; ++sample) {
    if (sample->error) {
      ++stats_.num_bad_logits;
      end_request(*sequence.stream, *sample->error);
      return;
    }
    event.tokens.push_back({{sample->token.id, sample->token.logprob}, sample->token.top});
  }
  events_.emplace_back(sequence.stream, std::move(event));
  sequence.num_scored += part.num_scores;
}

void Scheduler::commit_embedding(Sequence& sequence, BatchEmbedding& embedding, int64_t now_ns) {
  if (std::exchange(sequence.is_suspect, false)) --num_suspects_;
  if (embedding.error) {
    ++stats_.num_bad_logits;
    end_request(*sequence.stream, *embedding.error);
    return;
  }
  sequence.times.first_token_ns = sequence.times.last_token_ns = now_ns;
  ++stats_.num_embeddings;
  events_.emplace_back(sequence.stream, EmbeddingEvent{std::move(embedding.values)});
  finish(sequence, FinishReason::stop, -1);
}

void Scheduler::commit_token(Sequence& sequence, BatchSample& sample, int64_t now_ns) {
  sequence.times.sampling_ns += sample.sampling_ns;
  if (std::exchange(sequence.is_suspect, false)) --num_suspects_;
  if (sample.error) {
    ++stats_.num_bad_logits;
    end_request(*sequence.stream, *sample.error);
    return;
  }
  if (sequence.num_tokens() >= sequence.max_tokens) {  // it wanted its prompt's scores only
    finish(sequence, FinishReason::length, -1);
    return;
  }
  const TokenId id = sample.token.id;
  const std::vector<TokenId>& end_tokens = *sequence.end_tokens;
  if (std::find(end_tokens.begin(), end_tokens.end(), id) != end_tokens.end()) {
    finish(sequence, FinishReason::stop, id);
    return;
  }
  if (sequence.times.first_token_ns < 0) sequence.times.first_token_ns = now_ns;
  sequence.times.last_token_ns = now_ns;
  sequence.tokens.push_back(id);
  ++stats_.generated_tokens;
  events_.emplace_back(sequence.stream, TokenEvent{id, sample.token.logprob,
                                                   std::move(sample.token.top), sequence.choice});
  if (sequence.num_tokens() >= sequence.max_tokens) finish(sequence, FinishReason::length, -1);
}

}  // namespace headrace
