// What the steps of one completion were, for who wants to know where its time went. Part of the
// public C++ API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

/// A step that had rows of the completion; far from the first ones, several put together.
struct TimelineEntry {
  double start_ms = 0;         ///< of the first, since the request was submitted
  double duration_ms = 0;      ///< from planning to the tokens, over all
  double sampling_ms = 0;      ///< of which choosing this completion's token
  int64_t rows = 0;            ///< of the completion: tokens that were computed for it
  int64_t step_rows = 0;       ///< of the whole steps, others' included
  int64_t step_sequences = 0;  ///< sequences in the steps, this one included: their sum
  int32_t num_steps = 1;       ///< that the entry stands for
  int32_t num_tokens = 0;      ///< of these, that gave a token (an end token too)
  /// Since the entry before it: times that the completion began to wait for its reader, and times
  /// that its blocks were taken and it began again.
  int32_t num_pauses = 0;
  int32_t num_preemptions = 0;
};

/// One entry a step for the first kMaxSteps; those after them share kMaxMerged entries, each of
/// which stands for the same number of steps (but for the last), more the longer it goes on. So
/// a timeline takes 72 KiB at most. Time between entries was spent waiting.
struct Timeline {
  static constexpr size_t kMaxSteps = 1024;
  static constexpr size_t kMaxMerged = 128;

  std::vector<TimelineEntry> entries;
  double end_ms = 0;  ///< when the completion ended, since the request was submitted
  /// In all: also those after the last entry.
  int32_t num_pauses = 0;
  int32_t num_preemptions = 0;
  bool is_incomplete = false;  ///< there was no memory for some of it
};

}  // namespace headrace
