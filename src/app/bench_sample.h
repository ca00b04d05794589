// What repeated measurements say, and whether the machine left them alone. Pure arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/os/machine_load.h"

namespace headrace {

struct SampleSummary {
  double avg = 0;
  double min = 0;
  double median = 0;
  double max = 0;
  double stddev = 0;  ///< of the sample (n - 1); 0 for one
};

/// `samples` must not be empty.
SampleSummary summarize(std::vector<double> samples);

/// What happened while something was measured.
struct MeasuredStretch {
  MachineLoad before;
  MachineLoad after;
  double seconds = 0;      ///< of wall time
  int num_threads = 1;     ///< that the work had
  int num_processors = 1;  ///< that this process may use
};

/// Why the figures cannot be trusted, one sentence each; empty: nothing speaks against them.
std::vector<std::string> unsteady_reasons(const SampleSummary& summary,
                                          const MeasuredStretch& stretch);

}  // namespace headrace
