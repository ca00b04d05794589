// What the processors did since the machine started: differences tell whether a stretch of work had
// the machine for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headrace {

/// Seconds of processor time over all processors. Zero where the system does not say.
struct ProcessorSeconds {
  double busy = 0;    ///< any program's, ours included
  double stolen = 0;  ///< wanted, and given to others by a hypervisor
  int64_t num_processors = 0;
};

struct MachineLoad {
  ProcessorSeconds machine;
  double own_seconds = 0;   ///< of this process' threads
  int64_t preemptions = 0;  ///< times that a thread of this process had to give way
};

MachineLoad machine_load();

/// From the text of /proc/stat, at `ticks_per_second`. None where it has no line "cpu". Source:
/// proc_stat(5).
std::optional<ProcessorSeconds> parse_processor_seconds(const std::string& text,
                                                        double ticks_per_second);

}  // namespace headrace
