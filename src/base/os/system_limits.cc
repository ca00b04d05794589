// See system_limits.h. Reads /proc and the control-group file systems, versions 1 and 2.
#include "base/os/system_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/os/pin_thread.h"
#include "base/read_number.h"

namespace headrace {
namespace {

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::optional<int64_t> parse_int(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  int64_t value = 0;
  return read_number(text, value) == std::errc() ? std::optional(value) : std::nullopt;
}

// The folders of our control group and of all its parents, for one controller ("" is version 2).
std::vector<std::string> group_folders(const std::string& controller) {
  const auto groups = read_text("/proc/self/cgroup");
  std::vector<std::string> folders;
  if (!groups) return folders;
  std::istringstream lines(*groups);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool matches = controller.empty()
                             ? controllers == ",,"
                             : controllers.find("," + controller + ",") != std::string::npos;
    if (!matches) continue;
    const std::string root = controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    std::string path = line.substr(second + 1);
    while (!path.empty() && path != "/") {
      folders.push_back(root + path);
      path = path.substr(0, path.rfind('/'));
    }
    folders.push_back(root);
  }
  return folders;
}

// Where a version of control groups says what a group may use and does use.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* inactive_file;  // fields of memory.stat
  const char* active_file;
};

// Bytes that a control group may still take; none if it has no limit.
std::optional<uint64_t> bytes_left(const std::string& folder, const GroupFiles& files) {
  const auto number_in = [&](const char* name) -> std::optional<uint64_t> {
    const auto text = read_text(folder + name);
    const auto value = text ? parse_int(*text) : std::nullopt;
    if (!value || *value < 0) return std::nullopt;
    return static_cast<uint64_t>(*value);
  };
  const auto limit = number_in(files.limit);
  const auto usage = number_in(files.usage);
  if (!limit || !usage) return std::nullopt;
  const std::string stat = read_text(folder + "/memory.stat").value_or("");
  const uint64_t reclaimable = parse_memory_field(stat, files.inactive_file).value_or(0) +
                               parse_memory_field(stat, files.active_file).value_or(0);
  const uint64_t used = *usage - std::min(*usage, reclaimable);
  return *limit - std::min(*limit, used);
}

}  // namespace

int parse_cpu_max(const std::string& text) {
  std::istringstream in(text);
  std::string quota_text;
  std::string period_text;
  in >> quota_text >> period_text;
  const auto quota = parse_int(quota_text);
  const auto period = parse_int(period_text);
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;
  // No machine has this many processors; also keeps the sum below from overflowing.
  if (*quota > (int64_t{1} << 40)) return 0;
  return static_cast<int>(std::min<int64_t>((*quota + *period - 1) / *period, 1 << 20));
}

int usable_processors() {
  int count = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  // Later a thread may have been pinned.
  static const int in_mask = processors_of_this_thread();
  if (in_mask > 0) count = in_mask;
  for (const auto& folder : group_folders("")) {
    if (const auto text = read_text(folder + "/cpu.max")) {
      if (const int quota = parse_cpu_max(*text); quota > 0) count = std::min(count, quota);
    }
  }
  for (const auto& folder : group_folders("cpu")) {
    const auto quota = read_text(folder + "/cpu.cfs_quota_us");
    const auto period = read_text(folder + "/cpu.cfs_period_us");
    if (!quota || !period) continue;
    if (const int n = parse_cpu_max(*quota + " " + *period); n > 0) count = std::min(count, n);
  }
  return std::max(count, 1);
}

uint64_t memory_limit_bytes() {
  auto limit = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
               static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto apply = [&](const std::string& path) {
    const auto text = read_text(path);
    const auto value = text ? parse_int(*text) : std::nullopt;
    if (value && *value > 0) limit = std::min(limit, static_cast<uint64_t>(*value));
  };
  for (const auto& folder : group_folders("")) apply(folder + "/memory.max");
  for (const auto& folder : group_folders("memory")) apply(folder + "/memory.limit_in_bytes");
  return limit;
}

std::optional<uint64_t> parse_memory_field(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    std::string number;
    std::string unit;
    fields >> name >> number >> unit;
    if (!name.empty() && name.back() == ':') name.pop_back();
    if (name != key) continue;
    const auto value = parse_int(number);
    // No machine has this much; also keeps the product below from overflowing.
    if (!value || *value < 0 || *value > (int64_t{1} << 52)) return std::nullopt;
    return static_cast<uint64_t>(*value) * (unit == "kB" ? 1024 : 1);
  }
  return std::nullopt;
}

uint64_t memory_available_bytes() {
  uint64_t available = memory_limit_bytes();
  if (const auto text = read_text("/proc/meminfo")) {
    if (const auto bytes = parse_memory_field(*text, "MemAvailable")) {
      available = std::min(available, *bytes);
    }
  }
  for (const auto& folder : group_folders("")) {
    const GroupFiles files{"/memory.max", "/memory.current", "inactive_file", "active_file"};
    if (const auto left = bytes_left(folder, files)) available = std::min(available, *left);
  }
  for (const auto& folder : group_folders("memory")) {
    const GroupFiles files{"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                           "total_inactive_file", "total_active_file"};
    if (const auto left = bytes_left(folder, files)) available = std::min(available, *left);
  }
  return available;
}

uint64_t allow_open_files(uint64_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  rlimit raised = limit;
  raised.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

uint64_t peak_resident_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace headrace
