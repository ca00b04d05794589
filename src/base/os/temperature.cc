// See temperature.h.
#include "base/os/temperature.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/read_number.h"

namespace headrace {
namespace {

/// A machine with more of either is looked at no further.
constexpr size_t kMostFolders = 256;
constexpr size_t kMostEntries = 1024;
constexpr size_t kMostSensors = 512;
constexpr size_t kMostFileBytes = 64;

/// What no processor in service has is a sensor that is off or broken.
constexpr double kColdest = -60;
constexpr double kHottest = 150;

/// Drivers of processors' sensors, by the text of their file "name".
constexpr std::string_view kChips[] = {"coretemp",    "k10temp",     "k8temp",     "zenpower",
                                       "via_cputemp", "cpu_thermal", "cpu-thermal"};
/// Beginnings of the types of processors' thermal zones.
constexpr std::string_view kZones[] = {"x86_pkg_temp", "cpu", "soc"};

/// The begin of a file, without spaces at its end; "" where it cannot be read. Never waits.
std::string brief_text(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, kMostFileBytes> buffer{};
  struct stat kind {};
  ssize_t size = -1;
  if (::fstat(fd, &kind) == 0 && S_ISREG(kind.st_mode)) {
    size = ::read(fd, buffer.data(), buffer.size());
  }
  ::close(fd);
  std::string_view text(buffer.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return std::string(text);
}

std::optional<double> celsius_in(const std::string& path) {
  const std::string text = brief_text(path);
  int64_t thousandths = 0;
  if (read_number(text, thousandths) != std::errc()) return std::nullopt;
  const double celsius = static_cast<double>(thousandths) * 1e-3;
  if (celsius < kColdest || celsius > kHottest) return std::nullopt;
  return celsius;
}

/// Names in a folder, ordered; none where it cannot be read.
std::vector<std::string> names_in(const std::string& folder, size_t most) {
  std::vector<std::string> names;
  std::error_code fault;
  for (std::filesystem::directory_iterator it(folder, fault), end; !fault && it != end;
       it.increment(fault)) {
    if (names.size() == most) break;
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// "temp", digits, "_input".
bool is_temperature(std::string_view name) {
  constexpr std::string_view kPrefix = "temp";
  constexpr std::string_view kSuffix = "_input";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  name.remove_prefix(kPrefix.size());
  if (name.size() <= kSuffix.size()) return false;
  name.remove_suffix(kSuffix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_zone_of_processor(const std::string& type) {
  return std::any_of(std::begin(kZones), std::end(kZones),
                     [&](std::string_view zone) { return type.starts_with(zone); });
}

}  // namespace

TemperatureSensors::TemperatureSensors(const std::string& root) {
  find_hwmon(root + "/hwmon");
  find_zones(root + "/thermal");
}

void TemperatureSensors::add(std::string path) {
  if (paths_.size() < kMostSensors) paths_.push_back(std::move(path));
}

void TemperatureSensors::find_hwmon(const std::string& folder) {
  for (const std::string& chip : names_in(folder, kMostFolders)) {
    const std::string path = folder + "/" + chip;
    const std::string name = brief_text(path + "/name");
    if (std::find(std::begin(kChips), std::end(kChips), name) == std::end(kChips)) continue;
    std::vector<std::string> inputs;
    std::string control;  // a number for fans, on some processors 27 degrees above what they have
    bool has_die = false;
    for (const std::string& each : names_in(path, kMostEntries)) {
      if (!is_temperature(each)) continue;
      const size_t stem = each.size() - std::string_view("input").size();
      const std::string label = brief_text(path + "/" + each.substr(0, stem) + "label");
      has_die = has_die || label == "Tdie";
      (label == "Tctl" ? control : inputs.emplace_back()) = each;
    }
    if (!has_die && !control.empty()) inputs.push_back(control);
    for (const std::string& each : inputs) add(path + "/" + each);
  }
}

void TemperatureSensors::find_zones(const std::string& folder) {
  for (const std::string& zone : names_in(folder, kMostFolders)) {
    if (!zone.starts_with("thermal_zone")) continue;
    const std::string path = folder + "/" + zone;
    if (is_zone_of_processor(brief_text(path + "/type"))) add(path + "/temp");
  }
}

std::optional<double> TemperatureSensors::highest_celsius() const {
  std::optional<double> highest;
  for (const std::string& path : paths_) {
    const auto celsius = celsius_in(path);
    if (celsius && (!highest || *celsius > *highest)) highest = celsius;
  }
  return highest;
}

}  // namespace headrace
