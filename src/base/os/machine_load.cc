// See machine_load.h.
#include "base/os/machine_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace headrace {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

std::optional<ProcessorSeconds> parse_processor_seconds(const std::string& text,
                                                        double ticks_per_second) {
  std::optional<ProcessorSeconds> out;
  int64_t num_processors = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("cpu", 0) != 0) continue;
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    if (name != "cpu") {
      ++num_processors;
      continue;
    }
    // Guests' time is counted in user and nice as well.
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    if (!(fields >> user >> nice >> system >> idle)) return std::nullopt;
    fields >> iowait >> irq >> softirq >> steal;
    out.emplace();
    out->busy = (user + nice + system + irq + softirq) / ticks_per_second;
    out->stolen = steal / ticks_per_second;
  }
  if (out) out->num_processors = num_processors;
  return out;
}

MachineLoad machine_load() {
  MachineLoad load;
  std::ifstream in("/proc/stat");
  std::ostringstream text;
  text << in.rdbuf();
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (const auto machine = parse_processor_seconds(text.str(), ticks)) load.machine = *machine;
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  load.own_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  load.preemptions = usage.ru_nivcsw;
  return load;
}

}  // namespace headrace
