// See timeline_recorder.h.
#include "engine/scheduler/timeline_recorder.h"

#include <algorithm>
#include <new>
#include <utility>

namespace headrace {
namespace {

void put_together(TimelineEntry& entry, const TimelineEntry& next) {
  entry.duration_ms += next.duration_ms;
  entry.sampling_ms += next.sampling_ms;
  entry.rows += next.rows;
  entry.step_rows += next.step_rows;
  entry.step_sequences += next.step_sequences;
  entry.num_steps += next.num_steps;
  entry.num_tokens += next.num_tokens;
  entry.num_pauses += next.num_pauses;
  entry.num_preemptions += next.num_preemptions;
}

}  // namespace

void TimelineRecorder::add(const Step& step) noexcept {
  TimelineEntry entry;
  entry.start_ms = since_ms(step.start_ns);
  entry.duration_ms = static_cast<double>(step.end_ns - step.start_ns) * 1e-6;
  entry.sampling_ms = static_cast<double>(step.sampling_ns) * 1e-6;
  entry.rows = step.rows;
  entry.step_rows = step.step_rows;
  entry.step_sequences = step.step_sequences;
  entry.num_tokens = step.gave_token ? 1 : 0;
  entry.num_pauses = std::exchange(num_pauses_, 0);
  entry.num_preemptions = std::exchange(num_preemptions_, 0);
  if (joins_last()) {
    put_together(timeline_.entries.back(), entry);
    return;
  }
  if (timeline_.entries.size() == Timeline::kMaxSteps + Timeline::kMaxMerged) halve_merged();
  append(entry);
}

bool TimelineRecorder::joins_last() const {
  return timeline_.entries.size() > Timeline::kMaxSteps &&
         timeline_.entries.back().num_steps < steps_per_merged_;
}

// Two and two become one, all of them full; there is room for as many again.
void TimelineRecorder::halve_merged() noexcept {
  auto& entries = timeline_.entries;
  size_t size = Timeline::kMaxSteps;
  for (size_t i = size; i + 1 < entries.size(); i += 2) {
    TimelineEntry both = entries[i];
    put_together(both, entries[i + 1]);
    entries[size++] = both;
  }
  entries.resize(size);
  steps_per_merged_ *= 2;
}

void TimelineRecorder::append(const TimelineEntry& entry) noexcept {
  constexpr size_t kMost = Timeline::kMaxSteps + Timeline::kMaxMerged;
  constexpr size_t kFirst = 32;
  auto& entries = timeline_.entries;
  try {
    if (entries.size() == entries.capacity()) {
      entries.reserve(std::clamp(2 * entries.size(), kFirst, kMost));
    }
    entries.push_back(entry);
  } catch (const std::bad_alloc&) {
    timeline_.is_incomplete = true;
  }
}

void TimelineRecorder::note_pause() noexcept {
  ++num_pauses_;
  ++timeline_.num_pauses;
}

void TimelineRecorder::note_preemption() noexcept {
  ++num_preemptions_;
  ++timeline_.num_preemptions;
}

void TimelineRecorder::end(int64_t now_ns) noexcept {
  timeline_.end_ms = since_ms(now_ns);
}

}  // namespace headrace
