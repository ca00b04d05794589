// Keeps the timeline of one completion within its bounds. Must not know the scheduler.
#pragma once

#include <cstdint>

#include "headrace/timeline.h"

namespace headrace {

class TimelineRecorder {
 public:
  struct Step {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t sampling_ns = 0;
    int64_t rows = 0;
    int64_t step_rows = 0;
    int64_t step_sequences = 0;
    bool gave_token = false;
  };

  /// Times count from here on.
  explicit TimelineRecorder(int64_t submitted_ns) : submitted_ns_(submitted_ns) {}

  /// Steps come in order. Where there is no memory for one, the timeline says so.
  void add(const Step& step) noexcept;
  void note_pause() noexcept;
  void note_preemption() noexcept;
  void end(int64_t now_ns) noexcept;

  const Timeline& timeline() const { return timeline_; }

 private:
  double since_ms(int64_t ns) const { return static_cast<double>(ns - submitted_ns_) * 1e-6; }
  bool joins_last() const;
  void halve_merged() noexcept;
  void append(const TimelineEntry& entry) noexcept;

  const int64_t submitted_ns_;
  int32_t steps_per_merged_ = 2;
  int32_t num_pauses_ = 0;  // since the last entry
  int32_t num_preemptions_ = 0;
  Timeline timeline_;
};

}  // namespace headrace
