// How hot the processors are, where the machine has sensors that say so (Linux). Sources: Linux,
// Documentation/hwmon/sysfs-interface.rst and Documentation/driver-api/thermal/sysfs-api.rst.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headrace {

/// The sensors of processors under a folder, found once.
class TemperatureSensors {
 public:
  /// `root` has the folders "hwmon" and "thermal", as /sys/class does; what is not there, or is
  /// none of a processor's, is passed over. Hundreds of sensors at most are kept.
  explicit TemperatureSensors(const std::string& root);

  /// The highest, in degrees Celsius; none where no sensor tells one that a machine could have.
  std::optional<double> highest_celsius() const;

  size_t num_sensors() const { return paths_.size(); }

 private:
  void find_hwmon(const std::string& folder);
  void find_zones(const std::string& folder);
  void add(std::string path);

  std::vector<std::string> paths_;  ///< each a file with thousandths of a degree
};

}  // namespace headrace
